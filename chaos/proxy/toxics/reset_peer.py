"""`reset_peer`: the first data that comes by tears the connection down with RST."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import ClassVar

from chaos.proxy.toxics.stub import End, Plain, Schedule, Stub
from chaos.settings import setting


@dataclass
class ResetPeer(Plain):
    """Milliseconds."""

    kind: ClassVar[str] = "reset_peer"
    go_name: ClassVar[str] = "ResetToxic"
    resets: ClassVar[bool] = True
    timeout: int = setting("wait between the first data and the reset, ms", default=0)

    def stub(self, _dice: random.Random, /) -> Stub:
        return ResetPeerStub(self)


class ResetPeerStub(Stub):
    """The data is lost, and once it has come nothing stops the reset; an idle connection stays open."""

    binding = True

    def __init__(self, settings: ResetPeer) -> None:
        self.settings = settings

    def chunk(self, now: float, _stamp: float, _data: bytes, /) -> Schedule:
        return self.end(now, End.RESET)

    def end(self, now: float, _end: End, /) -> Schedule:
        return ((now + max(0, self.settings.timeout) / 1e3, End.RESET),)
