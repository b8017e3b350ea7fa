"""Send one load open loop: each request in a task of its own, at its own absolute time, whatever became of the ones
before.

    pace: sleep_until(due) ─► task ─► attempt ─► resend? ─► ... ─► one final row
    stop ─► nothing new is sent, what is in flight gets `drain_s`, then it is cut off

The books balance: every planned request has exactly one final row when `run` returns or raises, also when it was never
sent.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from chaos.journal.record import Outcome, Sample
from chaos.load.personas import GiveUp, next_move
from chaos.load.report import LoadReport
from chaos.load.schedule import LoadPlan, PlannedRequest, http_request
from chaos.load.stopwatch import Question, Stopwatch
from chaos.load.transport import HttpTransport, Transport
from chaos.ports import Clock

Sink = Callable[[Sample], None]

STOPPED = "stopped"
NOT_SENT = "not_sent"


class LoadDriver:
    """Drives one load once. `origin` is the monotonic time of t=0 of the run; rows go to `sink` as attempts end."""

    def __init__(
        self, plan: LoadPlan, transport: Transport, clock: Clock, sink: Sink, *, origin: float, drain_s: float = 5.0
    ) -> None:
        """Touches nothing yet."""
        self._plan = plan
        self._transport = transport
        self._clock = clock
        self._sink = sink
        self._origin = origin
        self._run = f"{origin:.6f}"
        self._drain_s = drain_s
        self._start_s = 0.0
        self._in_flight: set[asyncio.Task[None]] = set()
        self._halt = asyncio.Event()
        self._all_landed = asyncio.Event()
        self._trouble: BaseException | None = None
        self._closed = bytearray(len(plan.requests))  # 1: the request has its final row
        self._lateness_s: list[float] = []
        self._finished = 0

    async def run(self, start: float, stop: asyncio.Event) -> LoadReport:
        """Send everything, counting plan time from monotonic `start`, until all has ended or `stop` is set.

        Raises what the sink raised; sending ends then as if stopped.
        """
        self._start_s = start - self._origin
        listening = asyncio.create_task(self._listen(stop))
        try:
            await self._until_halt(self._pace())
            await self._until_halt(self._land())
            if self._halt.is_set() and self._in_flight:
                await asyncio.wait(self._in_flight, timeout=self._drain_s)
        finally:
            listening.cancel()
            await self._cut_off()
            self._settle()
        if self._trouble:
            raise self._trouble
        return self.report()

    def report(self) -> LoadReport:
        """What was planned, sent and finished so far."""
        return LoadReport(
            load=self._plan.load.name,
            planned=len(self._plan.requests),
            sent=len(self._lateness_s),
            finished=self._finished,
            lateness_s=tuple(self._lateness_s),
        )

    async def _listen(self, stop: asyncio.Event) -> None:
        await stop.wait()
        self._halt.set()

    async def _until_halt(self, work: Coroutine[Any, Any, None]) -> None:
        """Let `work` run to its end or until sending must stop. Raises what it raises."""
        working, halted = asyncio.create_task(work), asyncio.create_task(self._halt.wait())
        try:
            await asyncio.wait((working, halted), return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
        finally:
            halted.cancel()
            working.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await working

    async def _pace(self) -> None:
        """One task per arrival. The targets are absolute, so a late one never delays those after it."""
        for request in self._plan.requests:
            await self._clock.sleep_until(self._origin + self._start_s + request.at_s)
            if self._halt.is_set():
                return
            task = asyncio.create_task(self._serve(request))
            self._in_flight.add(task)
            task.add_done_callback(self._landed)

    async def _land(self) -> None:
        """Wait until nothing is in flight; patience is the clients' own."""
        while self._in_flight:
            self._all_landed.clear()
            await self._all_landed.wait()

    def _landed(self, task: asyncio.Task[None]) -> None:
        self._in_flight.discard(task)
        if not self._in_flight:
            self._all_landed.set()
        if not task.cancelled() and (error := task.exception()):
            self._trouble = self._trouble or error
            self._halt.set()

    async def _cut_off(self) -> None:
        """End what is still in flight; each closes its own row on the way out."""
        self._halt.set()
        flying = tuple(self._in_flight)
        for task in flying:
            task.cancel()
        await asyncio.gather(*flying, return_exceptions=True)

    def _settle(self) -> None:
        """Give every request that was never sent its final row."""
        for request in self._plan.requests:
            if not self._closed[request.number]:
                watch = Stopwatch(self._question(request), self._now_s())
                watch.given_up(self._now_s(), NOT_SENT)
                self._emit(request, 0, watch, final=True)

    async def _serve(self, request: PlannedRequest) -> None:
        """One request with all its resends."""
        attempt = 0
        while True:
            attempt += 1
            watch = await self._attempt(request, attempt)
            move = next_move(self._plan.behaviour, attempt, watch.ending)
            final = isinstance(move, GiveUp) or not await self._pause(move.after_s)
            self._emit(request, attempt, watch, final=final)
            if final:
                return

    async def _attempt(self, request: PlannedRequest, attempt: int) -> Stopwatch:
        """Send once, for no longer than the client waits. Being cut off ends the attempt, not the bookkeeping."""
        wire = http_request(self._plan.load, request, attempt, self._run)
        watch = Stopwatch(self._question(request), self._now_s())
        if attempt == 1:
            self._lateness_s.append(watch.sent_s - self._intended_s(request))
        try:
            async with asyncio.timeout(self._plan.behaviour.timeout_s):
                await self._transport.exchange(wire, watch)
        except TimeoutError:
            watch.timed_out(self._now_s())
        except asyncio.CancelledError:
            watch.given_up(self._now_s(), STOPPED)
        return watch

    async def _pause(self, pause_s: float) -> bool:
        """Wait before a resend. False when sending has stopped meanwhile."""
        try:
            async with asyncio.timeout(pause_s):
                await self._halt.wait()
        except TimeoutError:
            return not self._halt.is_set()
        except asyncio.CancelledError:
            return False
        return False

    def _emit(self, request: PlannedRequest, attempt: int, watch: Stopwatch, *, final: bool) -> None:
        outcome, why = watch.outcome()
        if final:
            self._closed[request.number] = 1
            self._finished += why not in (STOPPED, NOT_SENT)
        self._sink(self._row(request, attempt, watch, (outcome, why), final=final))

    def _row(
        self, request: PlannedRequest, attempt: int, watch: Stopwatch, outcome: tuple[Outcome, str], *, final: bool
    ) -> Sample:
        return Sample(
            load=self._plan.load.name,
            request=request.number,
            attempt=attempt,
            final=final,
            intended_s=self._intended_s(request),
            sent_s=watch.sent_s if attempt else float("nan"),
            first_token_s=watch.first_token_s,
            end_s=watch.end_s,
            outcome=outcome[0],
            why=outcome[1],
            status=watch.status,
            served_by=watch.served_by,
            degraded=watch.degraded,
            tokens=watch.tokens,
            gaps_s=watch.gaps_s,
            answer_ok=watch.answer_ok,
            trace_id=request.trace_id,
            leaked=watch.leaked,
        )

    def _question(self, request: PlannedRequest) -> Question:
        return Question.of(self._plan.load, self._intended_s(request), request.prompt, request.trace_id)

    def _intended_s(self, request: PlannedRequest) -> float:
        return self._start_s + request.at_s

    def _now_s(self) -> float:
        return self._clock.now() - self._origin


async def drive(
    plans: Iterable[LoadPlan],
    front_door: str,
    clock: Clock,
    sink: Sink,
    stop: asyncio.Event,
    *,
    start: float,
    origin: float,
    drain_s: float = 5.0,
) -> tuple[LoadReport, ...]:
    """Drive all loads of an experiment at once against `http://host:port`. Raises what `LoadDriver.run` raises."""

    async def one(plan: LoadPlan) -> LoadReport:
        async with HttpTransport(front_door, lambda: clock.now() - origin) as transport:
            driver = LoadDriver(plan, transport, clock, sink, origin=origin, drain_s=drain_s)
            return await driver.run(start, stop)

    running = [asyncio.create_task(one(plan)) for plan in plans]
    try:
        return tuple(await asyncio.gather(*running))
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
