"""`sse_garble`: one event of a token stream holds half of its JSON; the events around it are well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.proxy.toxics.event_harm import EventHarm
from chaos.proxy.toxics.per_request import PerRequest
from chaos.proxy.traffic.events import data_of
from chaos.settings import setting


@dataclass
class SseGarble(PerRequest):
    """The event is still one: only its JSON cannot be read."""

    kind: ClassVar[str] = "sse_garble"
    go_name: ClassVar[str] = "SseGarbleToxic"
    after_events: int = setting("events that pass before the garbled one", default=1)

    def harm(self) -> EventHarm:
        return _Garble(max(0, self.after_events) + 1)


class _Garble(EventHarm):
    """`[DONE]` has no JSON to cut and would lose its meaning, not its form; it passes."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number

    def edit(self, number: int, event: bytes, /) -> bytes:
        data = data_of(event) or b""
        if number != self._number or not data.startswith(b"{"):
            return event
        self.hit()
        self.events = 1
        return event.replace(data, data[: max(1, len(data) // 2)], 1)
