"""`sse_drop_done`: a token stream ends in order, but its `[DONE]` never comes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.proxy.toxics.event_harm import EventHarm
from chaos.proxy.toxics.per_request import PerRequest
from chaos.proxy.traffic.events import data_of


@dataclass
class SseDropDone(PerRequest):
    """No settings of its own. Everything else of the answer, `finish_reason` too, is there."""

    kind: ClassVar[str] = "sse_drop_done"
    go_name: ClassVar[str] = "SseDropDoneToxic"

    def harm(self) -> EventHarm:
        return _DropDone()


class _DropDone(EventHarm):
    """An event that becomes nothing is not framed either: an empty chunk would end the body."""

    def edit(self, _number: int, event: bytes, /) -> bytes:
        if data_of(event) != b"[DONE]":
            return event
        self.hit()
        self.events += 1
        return b""
