"""The gateway's own account of its decisions: a bounded ring of events with CLOCK_MONOTONIC times, served by
/debug/events.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

Clock = Callable[[], float]
"""CLOCK_MONOTONIC in seconds."""

Tell = Callable[[float, str, Mapping[str, Any]], None]
"""Monotonic time, name, fields."""


class EventRing:
    """Keeps the last `size` events. Sequence numbers start at 1 and never repeat, so a reader sees what it missed."""

    def __init__(self, clock: Clock, size: int = 4096, tell: Tell = lambda _mono, _name, _fields: None) -> None:
        """`tell` hears of every event too: the structured log."""
        self._clock = clock
        self._tell = tell
        self._events: deque[dict[str, Any]] = deque(maxlen=size)
        self._last = 0

    def add(self, name: str, *, mono: float | None = None, **fields: Any) -> None:
        """Write down that `name` happened, now or at monotonic time `mono`."""
        self._last += 1
        at = self._clock() if mono is None else mono
        self._events.append({"seq": self._last, "mono": at, "name": name, **fields})
        self._tell(at, name, fields)

    def after(self, seq: int) -> dict[str, Any]:
        """The document of /debug/events?after=N."""
        return {"events": [event for event in self._events if event["seq"] > seq], "last": self._last}
