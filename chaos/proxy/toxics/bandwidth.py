"""`bandwidth`: so many kilobytes a second and no more.

Large chunks leave in slices of 100 ms, so a slow stream trickles instead of jumping.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import ClassVar

from chaos.proxy.toxics.stub import Plain, Schedule, Stub
from chaos.settings import setting

_SLICE_MS = 100


@dataclass
class Bandwidth(Plain):
    """Units of 1000 bytes a second, which is also bytes per millisecond."""

    kind: ClassVar[str] = "bandwidth"
    go_name: ClassVar[str] = "BandwidthToxic"
    rate: int = setting("KB/s, 1 KB = 1000 bytes; 0 (and less) lets nothing pass", default=0)

    def stub(self, _dice: random.Random, /) -> Stub:
        return BandwidthStub(self)


class BandwidthStub(Stub):
    """Schedules from its ideal turn, not from when it was woken, so late wake-ups do not lower the rate."""

    def __init__(self, settings: Bandwidth) -> None:
        self.settings = settings

    def chunk(self, now: float, _stamp: float, data: bytes, /) -> Schedule:
        rate = self.settings.rate
        if rate <= 0:
            return ((math.inf, data),)
        size = rate * _SLICE_MS
        whole = (len(data) - 1) // size
        slices = [(now + (n + 1) * _SLICE_MS / 1e3, data[n * size : (n + 1) * size]) for n in range(whole)]
        return (*slices, (now + len(data) / rate / 1e3, data[whole * size :]))
