"""The wheel from outside: what is in it, and that what is in it suffices without the checkout."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from drill import ROOT, SHORT, Drill
from harm import ours

BUILD = "-m pip wheel --quiet --disable-pip-version-check --no-index --no-deps --no-build-isolation"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as `pip install .` builds it, with the backend that is installed here instead of a fresh one."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, *BUILD.split(), "--wheel-dir", str(folder), str(ROOT)]
    built = subprocess.run(command, capture_output=True, text=True, check=False, timeout=100)
    assert built.returncode == 0, built.stdout + built.stderr
    (found,) = folder.iterdir()
    return found


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages that holds the wheel and nothing else."""
    folder = tmp_path_factory.mktemp("site")
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder)
    return folder


def below(top: Path, pattern: str, placed: str) -> set[str]:
    """Files of the checkout under the names that they have in the wheel."""
    return {f"{placed}/{path.relative_to(top)}" for path in top.rglob(pattern) if path.is_file()}


def test_the_wheel_holds_both_packages_with_their_data_and_nothing_else(site: Path) -> None:
    """A file that is added to the checkout is in the wheel without anybody's help; tests and runs never are."""
    packed = {str(path.relative_to(site)) for path in site.rglob("*") if path.is_file()}
    assert {name for name in packed if ".dist-info/" not in name} == (
        below(ROOT / "chaos", "*.py", "chaos")
        | below(ROOT / "chaos" / "report" / "assets", "*", "chaos/report/assets")
        | below(ROOT / "target_stack", "*.py", "target_stack")
        | below(ROOT / "fixtures" / "prompts", "*", "chaos/_fixtures/prompts")
        | below(ROOT / "fixtures" / "documents", "*", "target_stack/_fixtures/documents")
        | below(ROOT / "fixtures" / "prompts", "product-questions.jsonl", "target_stack/_fixtures/prompts")
        | below(ROOT / "target_stack", "*.yaml", "target_stack")
    )


def test_the_wheel_brings_the_command_the_plugin_and_the_license(site: Path) -> None:
    (info,) = site.glob("brownout-*.dist-info")
    entries = (info / "entry_points.txt").read_text()
    assert "brownout = chaos.cli:main" in entries
    assert "[pytest11]\nbrownout = chaos.pytest_plugin" in entries
    assert "Apache License" in (info / "licenses" / "LICENSE").read_text()


def test_an_experiment_runs_from_the_wheel_alone(site: Path, tmp_path: Path) -> None:
    """Prompts and documents come out of the packages: nothing near the experiment or the harness is the checkout."""
    drill = Drill(tmp_path, {"PYTHONPATH": str(site)})
    folder = tmp_path / "experiments"
    folder.mkdir()
    shutil.copy(SHORT / "noop.yaml", folder)
    command = [sys.executable, "-m", "chaos", "run", "experiments/noop.yaml", "--no-runbook"]
    done = subprocess.run(
        command, cwd=tmp_path, env=drill.environment(), capture_output=True, text=True, check=False, timeout=90
    )
    # A busy machine may make it inconclusive; that it was carried out on a whole stack is what counts here.
    assert done.returncode in {0, 2}, done.stdout + done.stderr
    (verdict,) = tmp_path.glob("runs/noop/*/verdict.json")
    assert json.loads(verdict.read_text())["requests"]["good"] > 0
    assert ours(str(drill.state)) == []
