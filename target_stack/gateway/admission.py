"""The door: a request starts, waits in the bounded queue, or is refused at once with 503 and Retry-After."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import Literal, Protocol

from target_stack.gateway.errors import GatewayError, shed
from target_stack.gateway.policies.limiter import LimiterPolicy
from target_stack.gateway.policies.queue import AdmissionQueue, Priority, Shed, ShedWatch
from target_stack.gateway.policies.slots import Slots
from target_stack.gateway.telemetry import Telemetry


@dataclass(eq=False)
class _Ticket:
    """A request in line. `answer` is None for a start, or a word: refused, and why."""

    priority: Priority
    answer: asyncio.Future[str | None]


class Door(Protocol):
    """A place on a request's way where it may have to wait or turn back."""

    def slot(self, priority: Priority, deadline: float) -> AbstractAsyncContextManager[None]:
        """Hold the right to go on. Raises GatewayError (503) when shed."""
        ...


class OpenDoor:
    """A door that nobody guards."""

    def slot(self, priority: Priority, deadline: float) -> AbstractAsyncContextManager[None]:  # noqa: ARG002  # Door
        """Go on."""
        return nullcontext()


@dataclass(frozen=True)
class Doors:
    """The places where a request may be refused: as it arrives, and when its first token is there."""

    arrival: Door
    first_token: Door


class Admission:
    """Joins queue, slots and limiter. `in_flight` counts requests that have started."""

    def __init__(
        self, queue: AdmissionQueue, slots: Slots, limiter: LimiterPolicy, watch: ShedWatch, telemetry: Telemetry
    ) -> None:
        self._queue = queue
        self._slots = slots
        self._limiter = limiter
        self._watch = watch
        self._telemetry = telemetry
        self._sweep: asyncio.TimerHandle | None = None

    @property
    def in_flight(self) -> int:
        """Requests being worked on."""
        return self._slots.held

    @property
    def limit(self) -> int:
        """Requests that may be worked on at once."""
        return self._limiter.limit

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
            self._end(priority)

    def refuse(self, reason: str) -> GatewayError:
        """Count a refusal and give its error."""
        now = self._telemetry.clock()
        self._telemetry.metrics.shed.add(reason)
        if self._watch.shed(now):
            self._telemetry.events.add("shedding_started", mono=now, reason=reason)
        return shed(reason, self._queue.retry_after_s(now))

    def refuse_waiting(self, reason: str) -> None:
        """Send everybody in line away."""
        for ticket in self._queue.clear():
            _settle(ticket, reason)
        self._pump()

    def tick(self) -> None:
        """Call now and then: notices that shedding is over."""
        now = self._telemetry.clock()
        if self._watch.stopped(now):
            self._telemetry.events.add("shedding_stopped", mono=now)

    async def _enter(self, priority: Priority, deadline: float) -> None:
        now = self._telemetry.clock()
        if self._slots.free(priority, self._limiter.limit) and not self._queue.waiting(priority):
            self._slots.start(priority)
            self._queue.started_at_once(now)
            return
        ticket = _Ticket(priority, asyncio.get_running_loop().create_future())
        _answer(self._queue.offer(now, ticket, priority, deadline))
        self._pump()
        try:
            reason = await ticket.answer
        except asyncio.CancelledError:
            self._withdraw(ticket)
            raise
        if reason is not None:
            raise self.refuse(reason)

    def _withdraw(self, ticket: _Ticket) -> None:
        self._queue.remove(ticket)
        answer = ticket.answer
        if answer.done() and not answer.cancelled() and answer.result() is None:
            self._end(ticket.priority)  # the slot came in the same moment as the caller left

    def _end(self, priority: Priority) -> None:
        self._slots.end(priority)
        self._pump()

    def _pump(self) -> None:
        now, limit = self._telemetry.clock(), self._limiter.limit
        _answer(self._queue.expire(now))
        while self._slots.free("interactive", limit):
            ticket = self._queue.take(now, batch=self._slots.free("batch", limit))
            if not isinstance(ticket, _Ticket):
                break
            if not ticket.answer.done():
                self._slots.start(ticket.priority)
                ticket.answer.set_result(None)
        self._plan_sweep(now)

    def _plan_sweep(self, now: float) -> None:
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None
        expiry = self._queue.next_expiry()
        if expiry is not None:
            self._sweep = asyncio.get_running_loop().call_later(max(0.0, expiry - now), self._pump)


def doors(admission: Admission, at: Literal["arrival", "first_token"]) -> Doors:
    """One guarded door, where the settings place it; the other one is open."""
    return Doors(admission, OpenDoor()) if at == "arrival" else Doors(OpenDoor(), admission)


def _answer(refused: Iterable[Shed]) -> None:
    for one in refused:
        _settle(one.ticket, one.reason)


def _settle(ticket: object, answer: str | None) -> None:
    if isinstance(ticket, _Ticket) and not ticket.answer.done():
        ticket.answer.set_result(answer)
