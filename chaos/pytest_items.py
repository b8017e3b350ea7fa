"""An experiment file as a pytest collector, its run as an item, and the stack as a guest of the session.

The item decides nothing: the bench runs and judges, the item passes the answer on in pytest's words.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from chaos.paths import state_root
from chaos.spec.model import Experiment
from chaos.spec.parse import name_of
from chaos.spec.render import render_full
from chaos.wiring import read_experiment

if TYPE_CHECKING:
    from chaos.pytest_run import Bench

_MARK = re.compile(r"[A-Za-z0-9][\w.+-]*")
_STEERS_PYTEST = frozenset({"skip", "skipif", "xfail", "timeout"})
"""Marks that change what happens to any item; a tag of this name must not keep an experiment from being run."""


class NotUpheld(Exception):
    """Why an experiment fails its test; printed as it is."""


class ExperimentFile(pytest.File):
    """One YAML file."""

    def collect(self) -> Iterator[pytest.Item]:
        """The experiment; a file with problems is an item too, so that the others still run."""
        item: ExperimentItem = ExperimentItem.from_parent(self, name=name_of(str(self.path)))
        item.read = _read(self.path, self.config.invocation_params.dir)
        for tag in () if isinstance(item.read, str) else item.read.tags:
            _tag(item, tag)
        yield item


def _read(path: Path, here: Path) -> Experiment | str:
    """The experiment, or what is wrong with its file."""
    try:
        read = read_experiment(path, here)
    except OSError as reason:
        return f"error: cannot be read: {reason}"
    return read if isinstance(read, Experiment) else render_full(read).rstrip("\n")


def _tag(item: pytest.Item, tag: str) -> None:
    """A tag selects with -m as it is written, also under --strict-markers; one that cannot be a mark only with -k."""
    item.extra_keyword_matches.add(tag)
    if not _MARK.fullmatch(tag) or tag in _STEERS_PYTEST:
        return
    known = f"{tag}: tag of an experiment"
    if known not in item.config.getini("markers"):
        item.config.addinivalue_line("markers", known)
    item.add_marker(tag)


class ExperimentItem(pytest.Item):
    """One run of one experiment, or one series of runs. `read` is the experiment, or what is wrong with its file."""

    read: Experiment | str

    def runtest(self) -> None:
        """Run it on the session's stack. Raises NotUpheld."""
        if isinstance(self.read, str):
            raise NotUpheld(self.read)
        outcome = _bench(self.config).run(self.read)
        self.add_report_section("call", "brownout", "\n".join(outcome.events))
        facts = {
            "exit_code": outcome.exit_code,
            "verdict": outcome.verdict,
            "report": outcome.report,
            **outcome.series,
        }
        self.user_properties += [(f"brownout_{name}", fact) for name, fact in facts.items() if fact is not None]
        if outcome.signal:
            self.session.shouldstop = f"{outcome.signal} ended {self.name}"
        if outcome.exit_code != 0:
            raise NotUpheld(outcome.text)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """The verdict instead of a traceback."""
        if isinstance(excinfo.value, NotUpheld):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where the experiment stands."""
        return self.path, 0, self.name


class SharedBench:
    """A plugin registered with the first run: it ends the bench with the session, also with an interrupted one."""

    def __init__(self, bench: Bench) -> None:
        """Nothing is wrong yet."""
        self.bench = bench
        self._trouble: str | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Take the stack down; one that stays up makes the session fail."""
        self._trouble = self.bench.close()
        if self._trouble is not None:
            session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say what could not be taken down."""
        if self._trouble is not None:
            terminalreporter.write_line(f"error: {self._trouble}", red=True)


def _bench(config: pytest.Config) -> Bench:
    """The bench of this session, made for its first run."""
    shared = config.pluginmanager.get_plugin("brownout-bench")
    if shared is None:
        shared = SharedBench(_new_bench(config))
        config.pluginmanager.register(shared, "brownout-bench")
    bench: Bench = shared.bench
    return bench


def _new_bench(config: pytest.Config) -> Bench:
    """What the options ask for."""
    from chaos.pytest_run import Bench, Order  # noqa: PLC0415  collecting must not pay for the load driver

    here = config.invocation_params.dir
    order = Order(
        profile=config.getoption("--chaos-profile"),
        weaknesses=tuple(config.getoption("--chaos-weakness")),
        seed=config.getoption("--chaos-seed"),
        out=here / config.getoption("--chaos-out"),
        state=state_root(os.environ),
        here=here,
        metrics=config.getoption("--chaos-metrics"),
        metrics_token_file=config.getoption("--chaos-metrics-token-file"),
        runs=config.getoption("--chaos-until-refuted") or config.getoption("--chaos-repeat") or 1,
        hunt=config.getoption("--chaos-until-refuted") is not None,
        stop_when_refuted=config.getoption("--chaos-stop-when-refuted"),
    )
    return Bench(order)
