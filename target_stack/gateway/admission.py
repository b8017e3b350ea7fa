"""The door: a request starts, waits in the bounded queue, or is refused at once with 503 and Retry-After."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from target_stack.gateway.errors import GatewayError, shed
from target_stack.gateway.policies.limiter import AimdLimiter
from target_stack.gateway.policies.queue import AdmissionQueue, Priority, Shed, ShedWatch
from target_stack.gateway.telemetry import Telemetry

_Ticket = asyncio.Future[str | None]  # None: start; a word: refused, and why
_SWEEP_S = 0.1  # the wait limit shrinks while a line stands, so expiry is looked at at least this often


class Admission:
    """Joins queue and limiter. `in_flight` counts requests that have started."""

    def __init__(self, queue: AdmissionQueue, limiter: AimdLimiter, watch: ShedWatch, telemetry: Telemetry) -> None:
        self._queue = queue
        self._limiter = limiter
        self._watch = watch
        self._telemetry = telemetry
        self._sweep: asyncio.TimerHandle | None = None
        self.in_flight = 0

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return len(self._queue)

    @asynccontextmanager
    async def slot(self, priority: Priority, deadline: float) -> AsyncIterator[None]:
        """Hold the right to be worked on. Raises GatewayError (503) when shed."""
        await self._enter(priority, deadline)
        try:
            yield
        finally:
            self.in_flight -= 1
            self._pump()

    def refuse(self, reason: str) -> GatewayError:
        """Count a refusal and give its error."""
        now = self._telemetry.clock()
        self._telemetry.metrics.shed.add(reason)
        if self._watch.shed(now):
            self._telemetry.events.add("shedding_started", mono=now, reason=reason)
        return shed(reason, self._queue.retry_after_s())

    def tick(self) -> None:
        """Call now and then: notices that shedding is over."""
        now = self._telemetry.clock()
        if self._watch.stopped(now):
            self._telemetry.events.add("shedding_stopped", mono=now)

    async def _enter(self, priority: Priority, deadline: float) -> None:
        if self.in_flight < self._limiter.limit and not self.waiting:
            self.in_flight += 1
            return
        ticket: _Ticket = asyncio.get_running_loop().create_future()
        _answer(self._queue.offer(self._telemetry.clock(), ticket, priority, deadline))
        self._pump()
        try:
            reason = await ticket
        except asyncio.CancelledError:
            self._withdraw(ticket)
            raise
        if reason is not None:
            raise self.refuse(reason)

    def _withdraw(self, ticket: _Ticket) -> None:
        self._queue.remove(ticket)
        started = ticket.done() and not ticket.cancelled() and ticket.result() is None
        if started:  # the slot came in the same moment as the caller left
            self.in_flight -= 1
            self._pump()

    def _pump(self) -> None:
        now = self._telemetry.clock()
        _answer(self._queue.expire(now))
        while self.in_flight < self._limiter.limit:
            ticket = self._queue.take(now)
            if ticket is None:
                break
            if isinstance(ticket, asyncio.Future) and not ticket.done():
                self.in_flight += 1
                ticket.set_result(None)
        self._plan_sweep(now)

    def _plan_sweep(self, now: float) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        expiry = self._queue.next_expiry(now)
        if expiry is not None:
            delay_s = min(max(0.0, expiry - now), _SWEEP_S)
            self._sweep = asyncio.get_running_loop().call_later(delay_s, self._pump)


def _answer(refused: Iterable[Shed]) -> None:
    for one in refused:
        if isinstance(one.ticket, asyncio.Future) and not one.ticket.done():
            one.ticket.set_result(one.reason)
