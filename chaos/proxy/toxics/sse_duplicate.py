"""`sse_duplicate`: one event of a token stream comes twice, as from a hop that retries a write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.proxy.toxics.event_harm import EventHarm
from chaos.proxy.toxics.per_request import PerRequest
from chaos.settings import setting


@dataclass
class SseDuplicate(PerRequest):
    """A client that counts events or joins their texts gets one piece too many."""

    kind: ClassVar[str] = "sse_duplicate"
    go_name: ClassVar[str] = "SseDuplicateToxic"
    after_events: int = setting("events that pass before the one that comes twice", default=1)

    def harm(self) -> EventHarm:
        return _Duplicate(max(0, self.after_events) + 1)


class _Duplicate(EventHarm):
    """Both copies are equal to the byte."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    def edit(self, number: int, event: bytes, /) -> bytes:
        if number != self._number:
            return event
        self.hit()
        self.events = 1
        return event + event
