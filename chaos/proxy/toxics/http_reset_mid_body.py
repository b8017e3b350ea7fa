"""`http_reset_mid_body`: the connection is torn down with RST after so many bytes of an answer's body."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.proxy.toxics.per_request import Harm, PerRequest, Steps
from chaos.proxy.toxics.stub import End
from chaos.proxy.traffic.messages import Data, Head, Part
from chaos.settings import setting


@dataclass
class HttpResetMidBody(PerRequest):
    """Bytes. A body that is not longer passes whole, and counts as no hit."""

    kind: ClassVar[str] = "http_reset_mid_body"
    go_name: ClassVar[str] = "HttpResetMidBodyToxic"
    after_bytes: int = setting("bytes of the body that pass before the reset", default=0)

    def harm(self) -> Harm:
        return _ResetMidBody(max(0, self.after_bytes))


class _ResetMidBody(Harm):
    """Counts the body without its framing."""

    def __init__(self, after_bytes: int) -> None:
        super().__init__()
        self._left = after_bytes

    def applies(self, _answer: Head, /) -> bool:
        return True

    def part(self, part: Part, /) -> Steps:
        if not isinstance(part, Data):
            return ((0, part.raw),)
        head, rest = part.raw[: self._left], part.raw[self._left :]
        self._left -= len(head)
        if not rest:
            return ((0, head),)
        self.hit()
        return ((0, head), (0, End.ABORT))
