"""Experiments as pytest items: `pytest experiments/` runs every YAML file as a test.

A run that is not upheld fails with the reasons and the report's path, never with a traceback. Tags become marks, so `-m ci` and
`-k vector` work. All items of a session share one stack.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

EXPERIMENTS = "experiments"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of chaos runs."""
    group = parser.getgroup("brownout", "chaos experiments")
    group.addoption("--chaos-profile", choices=["embedded"], default="embedded", help="profile of the stack that is attacked")
    group.addoption("--chaos-seed", type=int, default=1, help="draws targets and arrivals (default 1)")
    group.addoption("--chaos-out", default="runs", metavar="DIR", help="folder of run directories (default runs)")
    group.addoption("--chaos-weakness", action="append", default=[], metavar="NAME", help="plant a known mistake")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Every YAML file below a folder called `experiments` is a test; game days are not."""
    below = file_path.parent.parts
    if file_path.suffix != ".yaml" or EXPERIMENTS not in below or "gamedays" in below:
        return None
    collector: pytest.Collector = ExperimentFile.from_parent(parent, path=file_path)
    return collector


class NotUpheld(Exception):
    """The verdict of a run that fails its test; printed as it is."""


class ExperimentFile(pytest.File):
    """One YAML file."""

    def collect(self) -> Iterator[pytest.Item]:
        """The experiment; a file with problems is an item too, so that the others still run."""
        from chaos.spec.model import Experiment
        from chaos.wiring import read_experiment

        read = read_experiment(self.path, Path.cwd())
        name = read.name if isinstance(read, Experiment) else self.path.stem
        item = ExperimentItem.from_parent(self, name=name)
        for tag in read.tags if isinstance(read, Experiment) else ():
            mark = tag.replace("-", "_")
            self.config.addinivalue_line("markers", f"{mark}: tag of an experiment")
            item.add_marker(mark)
        yield item


class ExperimentItem(pytest.Item):
    """One run of one experiment."""

    def runtest(self) -> None:
        """Run it on the session's stack. Raises NotUpheld."""
        from chaos.pytest_run import run_experiment

        state = _stack_of(self.config)
        code, text = run_experiment(
            self.path, state, Path(self.config.getoption("--chaos-out")), self.config.getoption("--chaos-seed")
        )
        self.user_properties.append(("brownout_exit_code", code))
        self.add_report_section("call", "brownout", text)
        if code != 0:
            raise NotUpheld(text)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The verdict instead of a traceback."""
        if isinstance(excinfo.value, NotUpheld):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where the experiment stands."""
        return self.path, 0, self.name


_STACK = pytest.StashKey[Any]()


def _stack_of(config: pytest.Config) -> Any:
    """The stack of this session, brought up at its first use."""
    from chaos.pytest_run import BorrowedStack

    if _STACK not in config.stash:
        config.stash[_STACK] = BorrowedStack.up(tuple(config.getoption("--chaos-weakness")))
    return config.stash[_STACK]


def pytest_unconfigure(config: pytest.Config) -> None:
    """Give the stack back."""
    stack = config.stash.get(_STACK, None)
    if stack is not None:
        stack.down()
