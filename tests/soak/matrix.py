"""A matrix: many trials of one promise, one JSON line each, so that a long evening can be cut short and taken up again.

trials ─► not yet in soak/<name>.jsonl ─► carry out, one after the other ─► one line each ─► figures against bars
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drill import ROOT, Drill, until_whole
from harm import ours

from chaos.environment import describe

Row = Mapping[str, Any]
Say = Callable[[str], None]

LEFT_BEHIND = "nothing is left behind"
WHOLE_WITHIN_S = 15.0


@dataclass(frozen=True)
class Trial:
    """One attempt. `name` is unique in its matrix and is what taking up again goes by."""

    name: str
    seed: int


@dataclass(frozen=True)
class Found:
    """What a trial gave: why it failed (None when it passed), and facts that figures are made of."""

    wrong: str | None
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Figure:
    """A number for the table. With `below` it is a bar: a value that is missing or not below it fails the matrix."""

    name: str
    value: float | None
    unit: str = "s"
    below: float | None = None

    def met(self) -> bool:
        """Whether the bar is kept; a figure without a bar cannot fail."""
        return self.below is None or (self.value is not None and self.value < self.below)

    def __str__(self) -> str:
        shown = "none" if self.value is None else f"{self.value:.4g}{self.unit}"
        bar = "" if self.below is None else f" ({'<' if self.met() else 'NOT <'} {self.below:.4g}{self.unit})"
        return f"{self.name} {shown}{bar}"


def no_figures(rows: Sequence[Row]) -> list[Figure]:
    """For a matrix whose trials only pass or fail."""
    del rows
    return []


@dataclass(frozen=True)
class Matrix:
    """`trials` may depend on what is stored; the drill of `carry_out` has a stack that is up where `stack` says so,
    brought up with the words of `up`.
    """

    name: str
    promise: str
    trials: Callable[[], Iterable[Trial]]
    carry_out: Callable[[Trial, Drill], Found]
    figures: Callable[[Sequence[Row]], list[Figure]] = no_figures
    stack: bool = True
    up: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ledger:
    """The JSON lines of one matrix."""

    path: Path

    def rows(self) -> list[Row]:
        """Every whole line; one that a kill cut off was never a result."""
        text = self.path.read_text() if self.path.is_file() else ""
        return [json.loads(line) for line in text.split("\n")[:-1]]

    def append(self, row: Row) -> None:
        """Add a line, on disk before the next trial begins."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a+b") as file:
            file.seek(0)
            file.truncate(file.read().rfind(b"\n") + 1)
            file.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())


@dataclass(frozen=True)
class Score:
    """Where a matrix stands."""

    name: str
    planned: int
    rows: Sequence[Row]
    figures: Sequence[Figure]

    @property
    def failed(self) -> list[Row]:
        """The trials that failed."""
        return [row for row in self.rows if not row["passed"]]

    @property
    def met(self) -> bool:
        """Every planned trial is there and passed, and every bar is kept."""
        done = 0 < self.planned == len(self.rows)
        return done and not self.failed and all(figure.met() for figure in self.figures)


def score(matrix: Matrix, ledger: Ledger) -> Score:
    """Judge what is stored. Rows of trials that are no longer planned do not count, except a process left behind."""
    names = [trial.name for trial in matrix.trials()]
    rows = [row for row in ledger.rows() if row["trial"] in {*names, LEFT_BEHIND}]
    return Score(matrix.name, len(names), rows, matrix.figures([row for row in rows if row["trial"] != LEFT_BEHIND]))


def carry_on(
    matrix: Matrix, ledger: Ledger, say: Say, place: Callable[[], contextlib.AbstractContextManager[Drill]]
) -> None:
    """Carry out every trial that is not recorded yet, strictly one after the other."""
    recorded = {row["trial"] for row in ledger.rows()}
    missing = [trial for trial in matrix.trials() if trial.name not in recorded]
    if not missing:
        return
    commit = describe(ROOT)["commit"]  # which code a line speaks for; a resumed matrix may mix several
    with place() as drill:
        for number, trial in enumerate(missing, 1):
            if matrix.stack:
                _ensure_whole(drill, say, matrix.up)
            row = {**_attempted(matrix, trial, drill), "commit": commit}
            ledger.append(row)
            said = "passed" if row["passed"] else f"FAILED: {row['why']}"
            say(f"{matrix.name} {number}/{len(missing)}  {trial.name}  {row['took_s']:.1f}s  {said}")
    if left := _end_leftovers(drill):
        ledger.append({"trial": LEFT_BEHIND, "seed": 0, "passed": False, "why": "; ".join(left), "commit": commit})


def _attempted(matrix: Matrix, trial: Trial, drill: Drill) -> Row:
    """The line of a trial. Whatever it raises is a failure of this trial and does not keep the others from running."""
    began = time.monotonic()
    try:
        found = matrix.carry_out(trial, drill)
    except Exception as error:  # noqa: BLE001  see above
        found = Found(f"{type(error).__name__}: {error}")
    took_s = round(time.monotonic() - began, 3)
    verdict = {"passed": found.wrong is None, "why": found.wrong}
    return {"trial": trial.name, "seed": trial.seed, **verdict, "took_s": took_s, **found.facts}


def be_interruptible() -> None:
    """SIGINT and SIGTERM end what is under way in good order; a background shell has both ignored."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.default_int_handler)


@contextlib.contextmanager
def own_place() -> Iterator[Drill]:
    """A state folder of its own, and whatever was started in it taken down on every way out."""
    with tempfile.TemporaryDirectory(prefix="brownout-soak-") as folder:
        drill = Drill(Path(folder))
        try:
            yield drill
        finally:
            with _unhurried():
                drill.call("recover")
                drill.call("down")


@contextlib.contextmanager
def _unhurried() -> Iterator[None]:
    """Whoever asks for the end a second time does not cut off what takes the stack down."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def bring_up(drill: Drill, *more: str) -> None:
    """`brownout up`. Raises AssertionError when it does not serve."""
    up = drill.call("up", *more)
    assert up.returncode == 0, up.stderr


@contextlib.contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """Nothing that a trial started outlives it."""
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def _ensure_whole(drill: Drill, say: Say, up: Sequence[str]) -> None:
    """A stack that the trial before has left broken is replaced, so that one failure stays one failure."""
    if not (drill.state / "stacks" / "bundled" / "inventory.json").exists():
        bring_up(drill, *up)
        return
    _, broken = until_whole(drill, WHOLE_WITHIN_S)
    if broken:
        say(f"the stack is replaced, it is broken: {broken}")
        drill.call("recover")
        drill.call("down")
        bring_up(drill, *up)


def _end_leftovers(drill: Drill) -> list[str]:
    """Processes that still name the state folder of the drill; told, and ended."""
    left = ours(str(drill.folder))
    for line in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(line.partition(":")[0]), signal.SIGKILL)
    return left
