"""The recent calls that a closed breaker judges by: those of the last seconds, or the last so many.

A time window forgets an old incident although nobody calls; a count window gives the same judgement at one call a
second and at a thousand.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

from target_stack.gateway.policies.settings import BreakerSettings


class Window(Protocol):
    """`calls`, and how many of them `failed` or were `slow`."""

    calls: int
    failed: int
    slow: int

    def add(self, now: float, *, failed: bool, slow: bool) -> None:
        """One more call, and forget those that are no longer recent."""
        ...

    def clear(self) -> None:
        """Forget all."""
        ...


class _Tally:
    """Keeps the sums of the calls that are still in the window."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """See Window."""
        self._recent: deque[tuple[float, bool, bool]] = deque()
        self.calls = self.failed = self.slow = 0

    def _take(self, now: float, *, failed: bool, slow: bool) -> None:
        self._recent.append((now, failed, slow))
        self._sum(1, failed=failed, slow=slow)

    def _forget(self) -> None:
        _, failed, slow = self._recent.popleft()
        self._sum(-1, failed=failed, slow=slow)

    def _sum(self, sign: int, *, failed: bool, slow: bool) -> None:
        self.calls += sign
        self.failed += sign * failed
        self.slow += sign * slow


class TimeWindow(_Tally):
    """Calls not older than `length_s` at the time of the latest."""

    def __init__(self, length_s: float) -> None:
        super().__init__()
        self._length_s = length_s

    def add(self, now: float, *, failed: bool, slow: bool) -> None:
        """See Window."""
        self._take(now, failed=failed, slow=slow)
        while now - self._recent[0][0] > self._length_s:
            self._forget()


class CountWindow(_Tally):
    """The last `length` calls."""

    def __init__(self, length: int) -> None:
        super().__init__()
        self._length = length

    def add(self, now: float, *, failed: bool, slow: bool) -> None:
        """See Window."""
        self._take(now, failed=failed, slow=slow)
        while self.calls > self._length:
            self._forget()


def make_window(settings: BreakerSettings) -> Window:
    """The window that the settings name."""
    return CountWindow(settings.window_calls) if settings.kind == "count" else TimeWindow(settings.window_s)
