"""`timeout`: a black hole. Data vanishes; after so long without any the connection is closed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import ClassVar

from chaos.proxy.toxics.stub import End, Plain, Schedule, Stub
from chaos.settings import setting


@dataclass
class Timeout(Plain):
    """Milliseconds. A connection that lost data cannot go on, so it is closed when the toxic is removed."""

    kind: ClassVar[str] = "timeout"
    go_name: ClassVar[str] = "TimeoutToxic"
    closes_when_removed: ClassVar[bool] = True
    timeout: int = setting("close after so long without a chunk, ms; 0 never closes", default=0)

    def stub(self, _dice: random.Random, /) -> Stub:
        return TimeoutStub(self)


class TimeoutStub(Stub):
    """Every chunk starts the wait again."""

    preempts = True

    def __init__(self, settings: Timeout) -> None:
        self.settings = settings

    def start(self, now: float, /) -> Schedule:
        if self.settings.timeout > 0:
            return ((now + self.settings.timeout / 1e3, End.CLOSE),)
        return ()

    def chunk(self, _now: float, stamp: float, _data: bytes, /) -> Schedule:
        return self.start(stamp)
