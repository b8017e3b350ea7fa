"""Virtual time: an event loop that jumps to its next timer whenever nobody can run.

A test written with sleeps takes no time and gives the same order every time. A jumping clock must not have real I/O in
flight, so it goes together with the in-memory host.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")

START = 1000.0
"""First moment of virtual time; not zero, so that a forgotten origin shows."""


class NothingLeftToWaitFor(Exception):
    """Every task waits and no timer is set: outside virtual time this hangs for ever."""


class _JumpingSelector(selectors.DefaultSelector):
    """Never sleeps: tells the loop how far to move its time instead."""

    jump: Callable[[float], None]

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            raise NothingLeftToWaitFor("every task waits and no timer is set")
        self.jump(timeout)
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An asyncio event loop in virtual time."""

    def __init__(self, start: float = START) -> None:
        """`start` is the first value of `time()`."""
        selector = _JumpingSelector()
        selector.jump = self._jump
        self._virtual_now = start
        super().__init__(selector)

    def time(self) -> float:
        """Virtual seconds."""
        return self._virtual_now

    def _jump(self, by_s: float) -> None:
        self._virtual_now += by_s


def run_virtual(main: Callable[[], Coroutine[Any, Any, T]], *, start: float = START) -> T:
    """Run `main()` in virtual time and give its result. Raises NothingLeftToWaitFor instead of hanging."""
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(start)) as runner:
        return runner.run(main())


class VirtualClock:
    """The `Clock` port of a VirtualLoop. Set `boot` to pretend a reboot."""

    def __init__(self, boot: str = "boot-1") -> None:
        """`boot` is what `boot_id` answers."""
        self.boot = boot

    def now(self) -> float:
        """The running loop's time."""
        return asyncio.get_running_loop().time()

    def wall(self) -> float:
        """A date in 2026 that moves with `now`."""
        return 1_780_000_000 + self.now()

    def boot_id(self) -> str:
        """The pretended boot."""
        return self.boot

    async def sleep_until(self, when: float) -> None:
        """Return at `when` exactly, at once if it is past."""
        if when > self.now():
            await asyncio.sleep(when - self.now())
