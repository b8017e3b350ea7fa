"""Experiments as pytest items: `pytest experiments/` runs every YAML file as a test.

A run that is not upheld fails with the reasons and the report's path, never with a traceback. Tags become marks, so
`-m ci` and `-k vector` work. All items of a session share one stack.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

EXPERIMENTS = "experiments"
GAME_DAYS = "gamedays"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of chaos runs."""
    group = parser.getgroup("brownout", "chaos experiments")
    group.addoption("--chaos-profile", metavar="NAME", help="run all on this stack, whatever the files are made for")
    group.addoption("--chaos-seed", type=int, default=1, help="draws targets and arrivals (default 1)")
    group.addoption("--chaos-out", default="runs", metavar="DIR", help="folder of run directories (default runs)")
    group.addoption("--chaos-weakness", action="append", default=[], metavar="NAME", help="plant a known mistake")
    group.addoption("--chaos-metrics", metavar="HOST:PORT", help="serve /metrics and /annotations while runs go on")
    group.addoption("--chaos-metrics-token-file", metavar="F", help="ask for its content there (made if missing)")
    group.addoption("--chaos-repeat", type=_runs, metavar="N", help="run each N times with derived seeds, and pool")
    group.addoption(
        "--chaos-until-refuted", type=_runs, metavar="MAX", help="repeat each until a run is refuted, MAX at most"
    )
    group.addoption(
        "--chaos-stop-when-refuted", action="store_true", help="end a run as soon as nothing to come can change that"
    )


def _runs(text: str) -> int:
    """No run at all would be upheld by nothing. Raises ArgumentTypeError."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"`{text}` is not a whole number from 1 up")
    return int(text)


def pytest_configure(config: pytest.Config) -> None:
    """Raises UsageError for options that contradict each other."""
    if config.getoption("--chaos-repeat") and config.getoption("--chaos-until-refuted"):
        raise pytest.UsageError("--chaos-repeat and --chaos-until-refuted exclude each other")
    if config.getoption("--chaos-stop-when-refuted") and (config.getoption("--chaos-repeat") or 1) > 1:
        raise pytest.UsageError("only whole runs are pooled: leave out --chaos-stop-when-refuted or --chaos-repeat")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Every YAML file below a folder called `experiments` is a test; game days are not."""
    below = _folders(file_path, parent.config.rootpath)
    if file_path.suffix not in (".yaml", ".yml") or EXPERIMENTS not in below or GAME_DAYS in below:
        return None
    from chaos.pytest_items import ExperimentFile  # noqa: PLC0415  a session without experiments must not pay for them

    collector: pytest.Collector = ExperimentFile.from_parent(parent, path=file_path)
    return collector


def _folders(file: Path, root: Path) -> tuple[str, ...]:
    """The folders of a file from the root of the session on; a project may itself lie below some `experiments`."""
    folder = file.parent
    return folder.relative_to(root.parent).parts if folder.is_relative_to(root) else folder.parts
