"""`limit_data`: so many bytes pass per connection, then it is closed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import ClassVar

from chaos.proxy.toxics.stub import End, Plain, Schedule, Stub
from chaos.settings import setting


@dataclass
class LimitData(Plain):
    """Bytes."""

    kind: ClassVar[str] = "limit_data"
    go_name: ClassVar[str] = "LimitDataToxic"
    bytes: int = setting("bytes that pass before the connection is closed", default=0)

    def stub(self, _dice: random.Random, /) -> Stub:
        return LimitDataStub(self)


class LimitDataStub(Stub):
    """Counts across updates of the toxic, so a raised limit grants only the difference."""

    def __init__(self, settings: LimitData) -> None:
        self.settings = settings
        self.passed = 0

    def chunk(self, now: float, _stamp: float, data: bytes, /) -> Schedule:
        allowed = max(0, self.settings.bytes - self.passed)
        head = data[:allowed]
        self.passed += len(head)
        last = self.passed >= self.settings.bytes
        return ((now, head), (now, End.CLOSE)) if last else ((now, head),)
