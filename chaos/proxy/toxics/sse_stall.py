"""`sse_stall`: after so many events a token stream falls silent on an open connection, as that of a frozen engine."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from chaos.proxy.toxics.event_harm import EventHarm
from chaos.proxy.toxics.per_request import PerRequest, Steps
from chaos.settings import setting


@dataclass
class SseStall(PerRequest):
    """What is held back loses nothing: it follows when the silence is over or the toxic is removed."""

    kind: ClassVar[str] = "sse_stall"
    go_name: ClassVar[str] = "SseStallToxic"
    after_events: int = setting("events that pass before the silence", default=1)
    duration: int = setting("length of the silence, ms; 0 (and less) lasts until the toxic is removed", default=0)

    def harm(self) -> EventHarm:
        return _Stall(max(0, self.after_events), self.duration / 1e3 if self.duration > 0 else math.inf)


class _Stall(EventHarm):
    """The empty bytes keep the stage busy, which presses back on the sender."""

    def __init__(self, after_events: int, silence_s: float) -> None:
        super().__init__()
        self._after_events = after_events
        self._silence_s = silence_s

    def passed(self, count: int, /) -> Steps:
        if count != self._after_events:
            return ()
        self.hit()
        return ((self._silence_s, b""),)
