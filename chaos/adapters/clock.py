"""The real clock: CLOCK_MONOTONIC, with sleeps that end within a fraction of a millisecond.

An event loop rounds its timers up to whole milliseconds. A sleep here is therefore coarse until shortly before the end,
and the rest waits on a kernel timer of its own (timerfd), which the loop sees as a readable file.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import time
from pathlib import Path

_FINE_S = 0.004  # covers the loop's rounding; at 500 sleeps a second two or three kernel timers exist at a time
_ABSOLUTE = 1  # TFD_TIMER_ABSTIME


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _TimerSpec(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


class MonotonicClock:
    """The `Clock` port on this machine. One value serves every event loop; it holds nothing open between calls."""

    def __init__(self, boot_id_file: Path = Path("/proc/sys/kernel/random/boot_id")) -> None:
        """`boot_id_file` holds a text that changes at every boot."""
        self._boot_id = boot_id_file.read_text(encoding="ascii").strip()
        self._libc = ctypes.CDLL(None, use_errno=True)

    def now(self) -> float:
        """Monotonic seconds."""
        return time.monotonic()

    def wall(self) -> float:
        """Unix seconds."""
        return time.time()

    def boot_id(self) -> str:
        """The kernel's id of this boot."""
        return self._boot_id

    async def sleep_until(self, when: float) -> None:
        """Return at monotonic time `when`, typically less than 0.2 ms after it; at once if it is past."""
        coarse_s = when - time.monotonic() - _FINE_S
        if coarse_s > 0:
            await asyncio.sleep(coarse_s)
        if when > time.monotonic():
            await self._fine(when)

    async def _fine(self, when: float) -> None:
        loop = asyncio.get_running_loop()
        try:
            timer = self._armed(when)
        except OSError:  # no file descriptor left: a late wake-up is better than none
            await asyncio.sleep(when - time.monotonic())
            return
        rung: asyncio.Future[None] = loop.create_future()
        loop.add_reader(timer, _ring, rung)
        try:
            await rung
        finally:
            loop.remove_reader(timer)
            os.close(timer)

    def _armed(self, when: float) -> int:
        """A timerfd that becomes readable at `when`. Raises OSError."""
        timer = int(self._libc.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC))
        if timer < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        seconds = int(when)
        due = _Timespec(seconds, max(1, int((when - seconds) * 1e9)))  # all zero would disarm it
        spec = _TimerSpec(_Timespec(0, 0), due)
        if self._libc.timerfd_settime(timer, _ABSOLUTE, ctypes.byref(spec), None) < 0:
            os.close(timer)
            raise OSError(ctypes.get_errno(), "timerfd_settime")
        return timer


def _ring(rung: asyncio.Future[None]) -> None:
    if not rung.done():
        rung.set_result(None)
