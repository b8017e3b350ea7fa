"""`sse_slow_first`: the first event of a token stream is late, all others follow as they come: a slow prefill."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.proxy.toxics.event_harm import EventHarm
from chaos.proxy.toxics.per_request import PerRequest, Steps
from chaos.settings import setting


@dataclass
class SseSlowFirst(PerRequest):
    """Milliseconds. The head of the answer is in time."""

    kind: ClassVar[str] = "sse_slow_first"
    go_name: ClassVar[str] = "SseSlowFirstToxic"
    delay: int = setting("wait between the head of the answer and its first event, ms", default=1000)

    def harm(self) -> EventHarm:
        return _SlowFirst(max(0, self.delay) / 1e3)


class _SlowFirst(EventHarm):
    """Counts from the head, so an engine that is slow itself is not made slower than the delay."""

    def __init__(self, delay_s: float) -> None:
        super().__init__()
        self._delay_s = delay_s

    def passed(self, count: int, /) -> Steps:
        if count:
            return ()
        self.hit()
        self.events = 1
        return ((self._delay_s, b""),)
