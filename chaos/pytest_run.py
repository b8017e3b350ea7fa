"""What the pytest plugin runs: one event loop and one stack for a whole session, one run for each item."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from chaos.adapters.clock import MonotonicClock
from chaos.adapters.host import real_host
from chaos.attempt import Place, Ran, plan_now, run_one, stopped_by_signals
from chaos.live.page import LivePage
from chaos.live.server import CannotListen, watched
from chaos.paths import shown
from chaos.plan.plan import Plan
from chaos.progress import Lines, Overheard, Progress
from chaos.repeating import Carried, Repeating, new_series
from chaos.report.summary import block
from chaos.run.stop import Stop
from chaos.series.order import Entry, Series
from chaos.series.order import Order as SeriesOrder
from chaos.series.pool import pool
from chaos.series.told import block as series_block
from chaos.series.told import run_line
from chaos.spec.model import Experiment
from chaos.stacks.lending import Kind, lend
from chaos.stacks.local import LocalStack, StackTrouble
from chaos.verdict.outcome import BAD_INPUT, STOPPED
from chaos.wiring import standing_stack

_SIGNALS = {"SIGINT", "SIGTERM"}


@dataclass(frozen=True)
class Order:
    """What the options of a session ask for. `profile` is the stack for all, else each file says its own; `state` is
    the harness's state folder, `here` where pytest was called, `metrics` where others may read while runs go on. More
    than one of `runs`, or a `hunt` for the first refuted one, is a series; `stop_when_refuted` as in `Place`.
    """

    profile: str | None
    weaknesses: tuple[str, ...]
    seed: int
    out: Path
    state: Path
    here: Path
    metrics: str | None = None
    metrics_token_file: str | None = None
    runs: int = 1
    hunt: bool = False
    stop_when_refuted: bool = False

    def series_of(self, experiment: Experiment) -> SeriesOrder | None:
        """What is asked of one experiment, as a series; None when a single run is."""
        if self.runs == 1 and not self.hunt:
            return None
        return SeriesOrder(
            experiment=experiment.name,
            title=experiment.title,
            path=experiment.path,
            seed=self.seed,
            most=self.runs,
            hunt=self.hunt,
            profile=self.profile or experiment.profile,
            weaknesses=self.weaknesses,
        )


@dataclass(frozen=True)
class Outcome:
    """What one item says. `text` holds the reasons and the report's path, `events` what happened on the way.

    `signal` names the signal that ended the run early; by then everything is reverted. `series` counts the runs of a
    series by verdict.
    """

    exit_code: int
    text: str
    events: tuple[str, ...]
    verdict: str | None
    report: str | None
    signal: str | None
    series: Mapping[str, int] = field(default_factory=dict)


class Bench:
    """The stacks that experiments of one session share, one up at a time: there from the first run on, gone after
    `close`.
    """

    def __init__(self, order: Order) -> None:
        """Nothing is started yet."""
        self._order = order
        self._runner = asyncio.Runner()
        self._held, self._served = contextlib.AsyncExitStack(), contextlib.AsyncExitStack()
        self._page: LivePage | None = None
        self._profile = ""
        self._stack: LocalStack | None = None
        self._trouble: StackTrouble | None = None

    def run(self, experiment: Experiment) -> Outcome:
        """Run one experiment. Raises nothing that a person could have caused, a signal included."""
        return self._runner.run(self._run(experiment))

    def close(self) -> str | None:
        """Take the stack down when it is ours; in one sentence why that failed."""
        try:
            self._runner.run(self._down())
        except StackTrouble as trouble:
            return str(trouble)
        finally:
            self._runner.close()
        return None

    async def _run(self, experiment: Experiment) -> Outcome:
        stop = Stop()
        events: list[str] = []
        async with stopped_by_signals(stop, events.append):
            ran = await self._attempt(experiment, stop, events)
        if isinstance(ran, Carried):
            return _series_outcome(ran, tuple(events), stop, self._order.here)
        return _outcome(ran, tuple(events), stop, self._order.here)

    async def _attempt(self, experiment: Experiment, stop: Stop, events: list[str]) -> Ran | Carried:
        order = self._order
        try:
            page = await self._watched(events.append)
            stack = await self._ready(order.profile or experiment.profile, stop)
        except CannotListen as reason:
            return Ran(BAD_INPUT, f"error: {reason}")
        except StackTrouble as trouble:
            return Ran(STOPPED if stop.requested() else trouble.exit_code, f"error: {trouble}")
        async with real_host() as host:
            place = Place(stack, host, order.out, order.state, order.stop_when_refuted)
            if wanted := order.series_of(experiment):
                series, folder = new_series(wanted, place)
                return await Repeating(experiment, folder, place, stop, _Heard(events, page)).run(series)
            planned = await plan_now(experiment, order.seed, place)
            if isinstance(planned, Ran):
                return planned
            return await run_one(*planned, stop, _heard_by(events, page, planned[0]).tell)

    async def _watched(self, warn: Callable[[str], None]) -> LivePage | None:
        """The page of this session, served from its first run on; it answers while a run goes on."""
        order = self._order
        if self._page is None and order.metrics is not None:
            page = watched(order.metrics, order.metrics_token_file, MonotonicClock(), warn)
            self._page = await self._served.enter_async_context(page)
        return self._page

    async def _ready(self, profile: str, stop: Stop) -> LocalStack:
        """The stack of this profile, brought up when it is not there. One that did not come up is not tried again.
        Raises StackTrouble.
        """
        if profile != self._profile:
            await self._held.aclose()
            self._profile, self._stack, self._trouble = profile, None, None
        if self._trouble is not None:
            raise self._trouble
        if self._stack is None:
            try:
                self._stack = await self._lend(profile, stop)
            except StackTrouble as trouble:
                self._trouble = trouble
                raise
        return self._stack

    async def _lend(self, profile: str, stop: Stop) -> LocalStack:
        order = self._order
        host = await self._held.enter_async_context(real_host())
        lending = lend(standing_stack(order.state), order.state, Kind(profile, order.weaknesses), host, stop.wait)
        return (await self._held.enter_async_context(lending)).stack

    async def _down(self) -> None:
        """A signal does not cut this short: what is half down would stay."""
        async with stopped_by_signals(Stop(), lambda _: None):
            await self._served.aclose()
            await self._held.aclose()


def _heard_by(events: list[str], page: LivePage | None, plan: Plan) -> Progress:
    """Who hears a run: the story of its item, and the page where others read while it goes on."""
    lines = Lines(events.append)
    return Overheard(lines, page.follow(plan)) if page else lines


@dataclass(frozen=True)
class _Heard:
    """A watcher that keeps the story of all runs of a series, in order."""

    events: list[str]
    page: LivePage | None

    def show(self, plan: Plan) -> Progress:
        """Each run says with which seed it begins."""
        self.events.append(f"== seed {plan.seed}")
        return _heard_by(self.events, self.page, plan)

    def done(self, series: Series, entry: Entry) -> None:
        """And how it ended."""
        self.events.append(run_line(series, entry))


def _outcome(ran: Ran, events: tuple[str, ...], stop: Stop, here: Path) -> Outcome:
    report = shown(ran.run_dir / "report.md", here) if ran.run_dir and ran.verdict else None
    told = block(ran.verdict, report) if ran.verdict else None
    return Outcome(
        exit_code=ran.exit_code,
        text="\n".join(filter(None, (ran.trouble, told))),
        events=events,
        verdict=ran.verdict.verdict if ran.verdict else None,
        report=report,
        signal=stop.by if stop.by in _SIGNALS else None,
    )


def _series_outcome(carried: Carried, events: tuple[str, ...], stop: Stop, here: Path) -> Outcome:
    """The answer of a series, with a line for each of its runs."""
    pooled, report = pool(carried.series), shown(carried.page, here)
    runs = "\n".join(run_line(carried.series, entry) for entry in carried.series.entries)
    tally = pooled.tally
    return Outcome(
        exit_code=carried.exit_code,
        text="\n".join(filter(None, (carried.trouble, series_block(carried.series, pooled, report), runs))),
        events=events,
        verdict=pooled.verdict,
        report=report,
        signal=stop.by if stop.by in _SIGNALS else None,
        series={
            "runs_upheld": tally.upheld,
            "runs_refuted": tally.refuted,
            "runs_inconclusive": tally.inconclusive,
        },
    )
