"""The load of a run as the runner sees it, and the gate: one good answer to every load before anything is harmed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from chaos.journal.record import Sample
from chaos.load.driver import drive
from chaos.load.report import load_finished_fields
from chaos.load.schedule import LoadPlan, PlannedRequest, http_request
from chaos.load.stopwatch import Question, Stopwatch
from chaos.load.transport import HttpTransport
from chaos.ports import Clock

GATE_WITHIN_S = 10.0
GATE_REQUEST_S = 5.0
GATE_PAUSE_S = 0.2


@dataclass(frozen=True)
class DrivenLoad:
    """All loads of an experiment against one front door (`http://host:port`). Samples go to `sink`."""

    plans: tuple[LoadPlan, ...]
    front_door: str
    clock: Clock
    sink: Callable[[Sample], None]
    origin: float

    def planned(self) -> Mapping[str, int]:
        """Requests planned by load name."""
        return {plan.load.name: len(plan.requests) for plan in self.plans}

    async def run(self, start_at: float, stop: asyncio.Event) -> Mapping[str, Any]:
        """Send everything; the fields of `load_finished`. Raises what the sink raises."""
        reports = await drive(
            self.plans, self.front_door, self.clock, self.sink, stop, start=start_at, origin=self.origin, drain_s=0.5
        )
        return load_finished_fields(reports)


async def users_are_served(plans: tuple[LoadPlan, ...], front_door: str, clock: Clock) -> str | None:
    """None once every load got one good, undegraded answer; else why not, after ten seconds of trying."""
    give_up = clock.now() + GATE_WITHIN_S
    while True:
        answers = await asyncio.gather(*(_ask(plan, front_door, clock) for plan in plans))
        refused = next((answer for answer in answers if answer is not None), None)
        if refused is None or clock.now() >= give_up:
            return refused
        await clock.sleep_until(clock.now() + GATE_PAUSE_S)


async def _ask(plan: LoadPlan, front_door: str, clock: Clock) -> str | None:
    if not plan.requests:
        return f"{plan.load.name}: the load has no request at all"
    began = clock.now()
    request = PlannedRequest(-1, 0.0, plan.requests[0].prompt, "0" * 31 + "1")
    watch = Stopwatch(Question.of(plan.load, 0.0, request.prompt, request.trace_id), 0.0)
    async with HttpTransport(front_door, lambda: clock.now() - began) as transport:
        try:
            async with asyncio.timeout(GATE_REQUEST_S):
                await transport.exchange(http_request(plan.load, request, 1, f"gate-{began:.6f}"), watch)
        except TimeoutError:
            watch.timed_out(clock.now() - began)
    outcome, why = watch.outcome()
    if why == "not_refused":  # served all the same; that it should not have been is for the hypotheses
        return None
    return None if outcome in {"good", "late"} else f"{plan.load.name}: {outcome} {why or watch.degraded}".rstrip()
