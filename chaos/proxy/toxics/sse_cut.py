"""`sse_cut`: a token stream breaks off after so many events, as when the server dies in the middle of an answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.proxy.toxics.event_harm import EventHarm
from chaos.proxy.toxics.per_request import PerRequest, Steps
from chaos.proxy.toxics.stub import End
from chaos.settings import setting

_ENDINGS = {"close": End.CLOSE, "reset": End.ABORT}


@dataclass
class SseCut(PerRequest):
    """A `clean` ending is the treacherous one: valid HTTP, and only what is missing tells that it is not the whole."""

    kind: ClassVar[str] = "sse_cut"
    go_name: ClassVar[str] = "SseCutToxic"
    after_events: int = setting("events that pass before the stream breaks off", default=1)
    ending: str = setting(
        "close: FIN inside the body; reset: RST; clean: the body ends as if it were whole", default="close"
    )

    def problem(self) -> str | None:
        if self.ending in (*_ENDINGS, "clean"):
            return None
        return f"ending {self.ending!r} is none of close, reset, clean"

    def harm(self) -> EventHarm:
        return _Cut(max(0, self.after_events), _ENDINGS.get(self.ending))


class _Cut(EventHarm):
    """`ending` None is the clean one."""

    def __init__(self, after_events: int, ending: End | None) -> None:
        super().__init__()
        self._after_events = after_events
        self._ending = ending

    def passed(self, count: int, /) -> Steps:
        if count != self._after_events:
            return ()
        self.hit()
        return self.finish() if self._ending is None else ((0, self._ending),)
