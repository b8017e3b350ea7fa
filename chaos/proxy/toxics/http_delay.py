"""`http_delay`: the answer to a request begins late; what follows is not slowed further."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.proxy.toxics.per_request import Harm, PerRequest, Steps
from chaos.proxy.traffic.messages import Head, Part
from chaos.settings import setting


@dataclass
class HttpDelay(PerRequest):
    """Milliseconds. Other requests on the same connection are in time, unlike with `latency`."""

    kind: ClassVar[str] = "http_delay"
    go_name: ClassVar[str] = "HttpDelayToxic"
    delay: int = setting("how long the head of the answer is held, ms", default=1000)

    def harm(self) -> Harm:
        return _Delay(max(0, self.delay) / 1e3)


class _Delay(Harm):
    """Any answer will do."""

    def __init__(self, delay_s: float) -> None:
        super().__init__()
        self._delay_s = delay_s

    def applies(self, _answer: Head, /) -> bool:
        return True

    def part(self, part: Part, /) -> Steps:
        if not isinstance(part, Head):
            return ((0, part.raw),)
        self.hit()
        return ((self._delay_s, part.raw),)
