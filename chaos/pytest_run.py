"""What the pytest plugin runs: one event loop and one stack for a whole session, one run for each item."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from chaos.adapters.clock import MonotonicClock
from chaos.adapters.host import real_host
from chaos.attempt import Place, Ran, plan_now, run_one, stopped_by_signals
from chaos.live.page import LivePage
from chaos.live.server import CannotListen, watched
from chaos.paths import shown
from chaos.progress import Lines, Overheard
from chaos.report.summary import block
from chaos.run.stop import Stop
from chaos.spec.model import Experiment
from chaos.stacks.lending import Kind, lend
from chaos.stacks.local import LocalStack, StackTrouble
from chaos.verdict.outcome import BAD_INPUT, STOPPED
from chaos.wiring import standing_stack

_SIGNALS = {"SIGINT", "SIGTERM"}


@dataclass(frozen=True)
class Order:
    """What the options of a session ask for. `profile` is the stack for all, else each file says its own; `state` is
    the harness's state folder, `here` where pytest was called, `metrics` where others may read while runs go on.
    """

    profile: str | None
    weaknesses: tuple[str, ...]
    seed: int
    out: Path
    state: Path
    here: Path
    metrics: str | None = None
    metrics_token_file: str | None = None


@dataclass(frozen=True)
class Outcome:
    """What one item says. `text` holds the reasons and the report's path, `events` what happened on the way.

    `signal` names the signal that ended the run early; by then everything is reverted.
    """

    exit_code: int
    text: str
    events: tuple[str, ...]
    verdict: str | None
    report: str | None
    signal: str | None


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
        return _outcome(ran, tuple(events), stop, self._order.here)

    async def _attempt(self, experiment: Experiment, stop: Stop, events: list[str]) -> Ran:
        order = self._order
        try:
            page = await self._watched(events.append)
            stack = await self._ready(order.profile or experiment.profile, stop)
        except CannotListen as reason:
            return Ran(BAD_INPUT, f"error: {reason}")
        except StackTrouble as trouble:
            return Ran(STOPPED if stop.requested() else trouble.exit_code, f"error: {trouble}")
        async with real_host() as host:
            planned = await plan_now(experiment, order.seed, Place(stack, host, order.out, order.state))
            if isinstance(planned, Ran):
                return planned
            lines = Lines(events.append)
            heard = Overheard(lines, page.follow(planned[0])) if page else lines
            return await run_one(*planned, stop, heard.tell)

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
