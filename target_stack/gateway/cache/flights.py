"""Single flight: who asks what another is being answered right now listens in, instead of asking again.

    first ─► flight (a task of its own: admission, retrieval, models, keeping) ─► frames, kept until it lands
    later ─► listens from the first frame on

A flight belongs to nobody. Whoever started it may leave or run out of time; it goes on while anybody listens, and is
cancelled with the last one, which stops the engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

from target_stack.gateway.errors import GatewayError
from target_stack.gateway.fallback import Answer
from target_stack.gateway.retries import EngineFailure
from target_stack.gateway.sse import Frame


@dataclass(frozen=True)
class Served:
    """An answer with the headers that tell about it."""

    answer: Answer
    headers: dict[str, str]


Work = Callable[[], AbstractAsyncContextManager[Served]]
"""Makes the answer, and holds all that it needs until it is left."""


class OutOfTime(Exception):
    """The listener's own deadline came before the first frame."""


@dataclass
class Flight:
    """One answer under way, and what has been said of it. `head` is its first news: who serves, under which headers."""

    head: asyncio.Future[Served]
    batches: list[list[Frame]] = field(default_factory=list)
    listeners: int = 0
    landed: bool = False
    failure: EngineFailure | None = None
    task: asyncio.Task[None] | None = None
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    def land(self, failure: EngineFailure | None = None) -> None:
        """Nothing more comes; the first landing counts."""
        if not self.landed:
            self.landed, self.failure = True, failure
            self.tell()

    def tell(self) -> None:
        """Wake all listeners."""
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def listen(self, deadline: float) -> AsyncIterator[list[Frame]]:
        """All frames from the first. Raises EngineFailure when the answer breaks, or is not whole by the deadline."""
        heard = 0
        while True:
            while heard < len(self.batches):
                heard += 1
                yield self.batches[heard - 1]
            if self.landed:
                break
            try:
                async with asyncio.timeout_at(deadline):
                    await self._news.wait()
            except TimeoutError as problem:
                raise EngineFailure("too_slow", "the answer was not finished in time") from problem
        if self.failure:
            raise EngineFailure(self.failure.kind, str(self.failure)) from self.failure


class SharedAnswer:
    """One listener's view of a flight, until its own deadline."""

    def __init__(self, flight: Flight, served_by: str, deadline: float) -> None:
        self._flight = flight
        self._deadline = deadline
        self.served_by = served_by

    def frames(self) -> AsyncIterator[list[Frame]]:
        """See Answer."""
        return self._flight.listen(self._deadline)

    async def close(self) -> None:
        """Nothing is held: the flight counts its listeners."""


class Flights:
    """All flights of a gateway."""

    def __init__(self, on_follower: Callable[[], None]) -> None:
        self._flights: dict[Hashable, Flight] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._on_follower = on_follower

    def __len__(self) -> int:
        """Flights under way."""
        return len(self._flights)

    @asynccontextmanager
    async def join(self, key: Hashable, work: Work, deadline: float) -> AsyncIterator[tuple[Served, bool]]:
        """The answer of the flight with this key, started if there is none; and whether another started it.

        Raises what the work raised, and OutOfTime.
        """
        flight = self._flights.get(key)
        follows = flight is not None
        if flight is None:
            flight = self._start(key, work)
        else:
            self._on_follower()
        flight.listeners += 1
        try:
            head = await _head_of(flight, deadline)
            yield Served(SharedAnswer(flight, head.answer.served_by, deadline), dict(head.headers)), follows
        finally:
            flight.listeners -= 1
            if not flight.listeners and not flight.landed:
                self._abandon(key, flight)

    async def close(self) -> None:
        """Cancel what is under way and wait for it."""
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _start(self, key: Hashable, work: Work) -> Flight:
        flight = Flight(asyncio.get_running_loop().create_future())
        flight.head.add_done_callback(_seen)
        self._flights[key] = flight
        flight.task = asyncio.create_task(self._fly(key, flight, work))
        self._tasks.add(flight.task)
        flight.task.add_done_callback(self._tasks.discard)
        return flight

    async def _fly(self, key: Hashable, flight: Flight, work: Work) -> None:
        try:
            async with work() as served:
                flight.head.set_result(served)
                try:
                    async for batch in served.answer.frames():
                        flight.batches.append(batch)
                        flight.tell()
                except EngineFailure as failure:
                    flight.land(failure)
                else:
                    flight.land()
        except Exception as problem:
            if flight.head.done():
                raise
            flight.head.set_exception(problem)  # every listener raises it in its own request
        finally:
            flight.head.cancel()
            flight.land(EngineFailure("aborted", "the answer was given up"))
            self._forget(key, flight)

    def _abandon(self, key: Hashable, flight: Flight) -> None:
        self._forget(key, flight)
        if flight.task:
            flight.task.cancel()

    def _forget(self, key: Hashable, flight: Flight) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]


async def _head_of(flight: Flight, deadline: float) -> Served:
    try:
        async with asyncio.timeout_at(deadline):
            return await asyncio.shield(flight.head)
    except TimeoutError:
        raise OutOfTime from None
    except GatewayError as error:
        raise error.again() from error


def _seen(head: asyncio.Future[Served]) -> None:
    if not head.cancelled():
        head.exception()  # seen, also when every listener is gone
