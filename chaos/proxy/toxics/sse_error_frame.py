"""`sse_error_frame`: after so many events the stream says that the engine has failed, and ends; its status was 200."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar

from chaos.proxy.toxics.event_harm import EventHarm
from chaos.proxy.toxics.per_request import PerRequest, Steps
from chaos.proxy.traffic.events import DONE
from chaos.settings import setting

_ERROR = {
    "error": {"message": "EngineCore encountered an issue.", "type": "InternalServerError", "param": None, "code": 500}
}


@dataclass
class SseErrorFrame(PerRequest):
    """The frame and the `[DONE]` behind it are what vLLM sends when its engine core dies in the middle of an answer."""

    kind: ClassVar[str] = "sse_error_frame"
    go_name: ClassVar[str] = "SseErrorFrameToxic"
    after_events: int = setting("events that pass before the error", default=1)

    def harm(self) -> EventHarm:
        return _ErrorFrame(max(0, self.after_events))


class _ErrorFrame(EventHarm):
    """What the upstream still says is dropped."""

    def __init__(self, after_events: int) -> None:
        super().__init__()
        self._after_events = after_events

    def passed(self, count: int, /) -> Steps:
        if count != self._after_events:
            return ()
        self.hit()
        self.events = 1
        return self.finish(b"data: " + json.dumps(_ERROR).encode() + b"\n\n" + DONE)
