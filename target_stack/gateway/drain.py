"""Leaving without losing anybody: what happens between SIGTERM and the exit.

    SIGTERM ─► /health says 503 ── notice_s ──► new work is refused, the line is sent away ── finish_s ──► streams that
    still run get an error frame ─► exit

Balancers see the health check fail before anybody is refused. What was started is finished if its time allows, and a
client whose answer is cut is told so; it never gets a silent end.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from target_stack.gateway.admission import Admission
from target_stack.gateway.errors import GatewayError
from target_stack.gateway.policies.settings import DrainSettings
from target_stack.gateway.telemetry import Telemetry

REASON = "draining"
LAST_WORDS_S = 0.3
"""Time for the last frames to go out."""


class CutShort(GatewayError):
    """The process ends before the answer is whole."""

    def __init__(self) -> None:
        """A 503 for who has seen nothing yet; the message is also that of the last frame of a stream."""
        super().__init__(
            503,
            "The service is shutting down and could not finish this answer. Please send the request again.",
            kind="ServiceUnavailableError",
            code=REASON,
            headers={"Retry-After": "1", "Connection": "close"},
        )


class Drain:
    """Knows who is being served, and ends it in good order. `leaving`: /health says so. `closed`: nobody gets in."""

    def __init__(self, settings: DrainSettings, admission: Admission, telemetry: Telemetry) -> None:
        self._settings = settings
        self._admission = admission
        self._telemetry = telemetry
        self._requests = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self._limits: set[asyncio.Timeout] = set()
        self.leaving = False
        self.closed = False

    @contextmanager
    def request(self) -> Iterator[None]:
        """A request from its first byte to its last: the process stays for it."""
        self._requests += 1
        self._idle.clear()
        try:
            yield
        finally:
            self._requests -= 1
            if not self._requests:
                self._idle.set()

    @asynccontextmanager
    async def bounded(self) -> AsyncIterator[None]:
        """Work that may take long. Raises CutShort when the process has to go before it is done. Not to be nested."""
        limit = asyncio.timeout(None)
        self._limits.add(limit)
        try:
            async with limit:
                yield
        except TimeoutError as problem:
            if limit.expired():
                raise CutShort from problem
            raise
        finally:
            self._limits.discard(limit)

    def refusal(self) -> GatewayError:
        """Nobody gets in any more: the error for one who tries, on a connection that ends with it."""
        error = self._admission.refuse(REASON)
        error.headers["Connection"] = "close"
        return error

    async def run(self) -> None:
        """Go through all of it; at the end nothing runs."""
        if self._settings.kind == "none":
            return
        events = self._telemetry.events
        self.leaving = True
        events.add("drain_started", requests=self._requests)
        await asyncio.sleep(self._settings.notice_s)
        self.closed = True
        self._admission.refuse_waiting(REASON)
        await self._until_idle(self._settings.finish_s)
        cut = self._requests
        for limit in self._limits:
            if not limit.expired():
                limit.reschedule(self._telemetry.clock())
        await self._until_idle(LAST_WORDS_S)
        events.add("drain_finished", cut=cut)

    async def _until_idle(self, patience_s: float) -> None:
        try:
            async with asyncio.timeout(patience_s):
                await self._idle.wait()
        except TimeoutError:
            pass  # what still runs is cut next
