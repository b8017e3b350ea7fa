"""The gateway's own account of its decisions: a bounded ring of events with CLOCK_MONOTONIC times, served by
/debug/events.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

Clock = Callable[[], float]
"""CLOCK_MONOTONIC in seconds."""


class EventRing:
    """Keeps the last `size` events. Sequence numbers start at 1 and never repeat, so a reader sees what it missed."""

    def __init__(self, clock: Clock, size: int = 4096) -> None:
        self._clock = clock
        self._events: deque[dict[str, Any]] = deque(maxlen=size)
        self._last = 0

    def add(self, name: str, *, mono: float | None = None, **fields: Any) -> None:
        """Write down that `name` happened, now or at monotonic time `mono`."""
        self._last += 1
        self._events.append(
            {"seq": self._last, "mono": self._clock() if mono is None else mono, "name": name, **fields}
        )

    def after(self, seq: int) -> dict[str, Any]:
        """The document of /debug/events?after=N."""
        return {"events": [event for event in self._events if event["seq"] > seq], "last": self._last}
