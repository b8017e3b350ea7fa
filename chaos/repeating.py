"""One experiment again and again, each time with another seed, until its series is over.

Shared by the command line, the pytest plugin and whoever plans several experiments: all hand in a stack and a watcher,
all get a `Carried`. The series is on disk before its first run and after each, so it can be resumed after any death.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from chaos.adapters.entropy import SeededEntropy
from chaos.attempt import Place, Ran, plan_now, run_one
from chaos.plan.plan import Plan
from chaos.ports import Host
from chaos.progress import Progress
from chaos.run.stop import Stop
from chaos.series.order import Entry, Order, Series, came_to_its_end, seed_of
from chaos.series.pool import pool
from chaos.series.shelf import ENVIRONMENT_FILE, EXPERIMENT_FILE, PAGE_FILE, save, thin
from chaos.spec.model import Experiment
from chaos.verdict.outcome import HARNESS_ERROR, NOT_REVERTED, STOPPED, UPHELD, Verdict, worst

_ENDS_A_SERIES = (NOT_REVERTED, HARNESS_ERROR)
"""After these the next run would stand on ground that nobody knows."""


@dataclass(frozen=True)
class Carried:
    """What came of it. `trouble` is a complete message for people when the series ended before it was over."""

    series: Series
    folder: Path
    exit_code: int
    trouble: str | None = None

    @property
    def page(self) -> Path:
        """Where it can be read."""
        return self.folder / PAGE_FILE


class Watcher(Protocol):
    """Sees the runs of a series come and go."""

    def show(self, plan: Plan) -> Progress:
        """A run begins; what it returns hears it."""
        ...

    def done(self, series: Series, entry: Entry) -> None:
        """A run counts."""
        ...


def new_series(order: Order, place: Place) -> tuple[Series, Path]:
    """A series without a run, and the folder that it will have; nothing is written yet."""
    series = Series(_name(place.host, order), order)
    return series, place.out / order.experiment / series.name


def _name(host: Host, order: Order) -> str:
    stamp = datetime.fromtimestamp(host.clock.wall(), UTC).strftime("%Y-%m-%dT%H-%M-%SZ")
    return f"series-{stamp}-{SeededEntropy(order.seed).stream(f'series/{host.clock.now()}').randrange(16**4):04x}"


@dataclass(frozen=True)
class Repeating:
    """A series under way: what is run, where, who may stop it, and who watches."""

    experiment: Experiment
    folder: Path
    place: Place
    stop: Stop
    watcher: Watcher

    async def run(self, series: Series) -> Carried:
        """Make the runs that are due. Raises nothing that a person could have caused."""
        try:
            return await self._run(series)
        except OSError as reason:
            return Carried(series, self.folder, HARNESS_ERROR, f"error: the series could not be written: {reason}")

    async def _run(self, series: Series) -> Carried:
        series = self._opened(series)
        while (number := series.due()) is not None:
            if self.stop.requested():
                return self._carried(series, STOPPED)
            ran = await self._one(seed_of(series.order.seed, number))
            entry = _entry(number, ran, self.stop)
            if entry is None:
                series = series.without(ran.run_dir.name) if ran.run_dir else series
                self._save(series)
                return self._carried(series, ran.exit_code, ran.trouble)
            series = series.with_run(entry)
            self._remember(entry)
            self._save(series)
            series = self._thinned(series, entry)
            self.watcher.done(series, entry)
            if ran.exit_code in _ENDS_A_SERIES:
                return self._carried(series, ran.exit_code, ran.trouble)
        return self._carried(series)

    async def _one(self, seed: int) -> Ran:
        """A guard ends its run alone, a signal the series: each run has a stop of its own."""
        planned = await plan_now(self.experiment, seed, self.place, self.folder)
        if isinstance(planned, Ran):
            return planned
        with self.watcher.show(planned[0]) as progress:
            return await run_one(*planned, self.stop.part(), progress.tell)

    def _opened(self, series: Series) -> Series:
        """On disk before the first run; on what a dead session left behind its last steps are made up for."""
        if self.place.host.files.read(self.folder / EXPERIMENT_FILE) is None:
            self.place.host.files.write_atomic(self.folder / EXPERIMENT_FILE, self.experiment.text)
        self._save(series)
        for entry in series.entries:
            series = self._thinned(series, entry)
        return series

    def _thinned(self, series: Series, entry: Entry) -> Series:
        """First a run is known to count, then what may go of it goes."""
        if series.order.keep != "refuted" or entry.verdict.verdict != "upheld" or not entry.whole:
            return series
        series = series.with_run(thin(self.place.host.files, self.folder, entry))
        self._save(series)
        return series

    def _remember(self, entry: Entry) -> None:
        """What the series ran on, as its first run found it; that outlives runs that are not kept."""
        files, ours = self.place.host.files, self.folder / ENVIRONMENT_FILE
        text = files.read(self.folder / entry.folder / ENVIRONMENT_FILE)
        if text is not None and files.read(ours) is None:
            files.write_atomic(ours, text)

    def _save(self, series: Series) -> None:
        save(self.place.host.files, self.folder, series)

    def _carried(self, series: Series, code: int = UPHELD, trouble: str | None = None) -> Carried:
        return Carried(series, self.folder, worst([pool(series).exit_code, code]), trouble)


def _entry(number: int, ran: Ran, stop: Stop) -> Entry | None:
    """The run as one that counts; None when it could not be judged, or was ended from outside and says nothing."""
    if ran.verdict is None or ran.run_dir is None or (stop.requested() and not came_to_its_end(ran.verdict)):
        return None
    return Entry(number, ran.run_dir.name, ran.verdict)


def speaks_for(series: Series) -> Verdict | None:
    """The one run that stands for the series on a runbook page: the first refuted, else the last."""
    entry = series.first_refuted or next(reversed(series.entries), None)
    return entry.verdict if entry else None
