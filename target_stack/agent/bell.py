"""Somebody may have something to do: rung by whoever changed the store, heard by all who wait for a change."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable


class Bell:
    """Wakes every waiter of this process; `also` carries the sound to others."""

    def __init__(self) -> None:
        """Silent so far."""
        self._waiting: set[asyncio.Future[None]] = set()
        self.also: list[Callable[[], None]] = []

    def ring(self) -> None:
        """Wake all who wait now."""
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)
        for carry in self.also:
            carry()

    async def wait(self, limit_s: float) -> None:
        """Until the next ring, for at most so long."""
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(waiter)
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(limit_s):
                    await waiter
        finally:
            self._waiting.discard(waiter)
