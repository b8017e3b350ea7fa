"""`slow_close`: data passes, the end of the stream comes late."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import ClassVar

from chaos.proxy.toxics.stub import End, Plain, Schedule, Stub
from chaos.settings import setting


@dataclass
class SlowClose(Plain):
    """Milliseconds."""

    kind: ClassVar[str] = "slow_close"
    go_name: ClassVar[str] = "SlowCloseToxic"
    delay: int = setting("how long the end of the stream is held, ms", default=0)

    def stub(self, _dice: random.Random, /) -> Stub:
        return SlowCloseStub(self)


class SlowCloseStub(Stub):
    """Schedules the end; an update while it is held starts the wait again."""

    def __init__(self, settings: SlowClose) -> None:
        self.settings = settings

    def end(self, now: float, end: End, /) -> Schedule:
        return ((now + max(0, self.settings.delay) / 1e3, end),)
