"""The direction of the data is the direction of the imports; an import that runs against it is named with its line."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

BASE = {"units", "settings", "ports", "inventory"}
MAY_IMPORT = {
    "units": set(),
    "settings": set(),
    "ports": set(),
    "inventory": set(),
    "journal": {"units", "ports"},
    "faults": BASE,
    "probes": BASE | {"journal.series"},
    "spec": {"units", "settings", "inventory", "faults.fault"},
    "plan": BASE | {"spec", "faults.fault"},
    "load": BASE | {"spec.model", "journal.record"},
    "proxy": {"settings"},
    "saboteurs": {"units", "spec.model", "load", "adapters.clock", "adapters.entropy"},
    "stacks": BASE,
    "run": BASE
    | {
        "spec.model",
        "plan",
        "journal",
        "load",
        "faults.fault",
        "faults.catalog",
        "faults.grips.bare",
        "probes.probe",
        "adapters",
    },
    "verdict": BASE | {"spec.model", "journal", "plan.plan", "tipping.predict"},
    "tipping": {"units", "journal", "spec.model", "load.personas", "verdict"},
    "openmetrics": {"journal.series"},
    "report": BASE | {"spec", "plan", "journal", "verdict", "openmetrics"},
    "live": {
        "ports",
        "openmetrics",
        "journal",
        "plan.plan",
        "spec.model",
        "report.events",
        "verdict.live",
        "proxy.token",
    },
    "runbooks": {"units", "verdict"},
    "series": {"ports", "verdict", "report"},
    "comparing": {"verdict", "report", "series"},
    "adapters": {"units", "ports", "saboteurs"},
    "testing": BASE | {"faults.fault", "faults.grips", "probes.probe", "journal"},
}


def _imports(path: Path) -> Iterator[tuple[int, str]]:
    """Every imported module with its line, type-only imports too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.lineno, node.module


def _package(path: Path) -> str:
    return path.relative_to(ROOT / "chaos").parts[0].removesuffix(".py")


def _allowed(module: str, package: str) -> bool:
    inner = module.removeprefix("chaos.")
    granted = MAY_IMPORT[package] | {package}
    return any(inner == grant or inner.startswith(grant + ".") for grant in granted)


def test_every_import_follows_the_direction_of_the_data() -> None:
    """A stage never knows the stages after it; `wiring`, `cli` and the plugin alone may know all."""
    against = [
        f"{path.relative_to(ROOT)}:{line}: `{_package(path)}` may not import `{module}`; let chaos/wiring.py hand it in"
        for path in sorted((ROOT / "chaos").rglob("*.py"))
        if _package(path) in MAY_IMPORT
        for line, module in _imports(path)
        if module.startswith("chaos.") and not _allowed(module, _package(path))
    ]
    assert [] == against


@pytest.mark.parametrize(("here", "there"), [("chaos", "target_stack"), ("target_stack", "chaos")])
def test_the_harness_and_the_stack_never_import_each_other(here: str, there: str) -> None:
    """They meet through HTTP, /metrics, OS handles and the inventory file."""
    crossing = [
        f"{path.relative_to(ROOT)}:{line}: imports {module}"
        for path in sorted((ROOT / here).rglob("*.py"))
        for line, module in _imports(path)
        if module.split(".")[0] == there
    ]
    assert [] == crossing
