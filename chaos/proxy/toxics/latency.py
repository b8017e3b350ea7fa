"""`latency`: every chunk leaves `latency` (give or take `jitter`) after it came in.

The delay counts from the receive time, not from the turn, so pipelined chunks are all late by the same amount and
throughput stays.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import ClassVar

from chaos.proxy.toxics.stub import COARSE, Plain, Schedule, Stub
from chaos.settings import setting


@dataclass
class Latency(Plain):
    """Milliseconds. The delay of a chunk is uniform over whole milliseconds in [latency - jitter, latency + jitter)."""

    kind: ClassVar[str] = "latency"
    go_name: ClassVar[str] = "LatencyToxic"
    buffer: ClassVar[int] = 1024
    grain: ClassVar[int] = COARSE
    latency: int = setting("delay of every chunk, ms", default=0)
    jitter: int = setting("greatest deviation from it, ms", default=0)

    def stub(self, dice: random.Random, /) -> Stub:
        return LatencyStub(self, dice)


class LatencyStub(Stub):
    """Holds one chunk at a time; those behind it wait in the buffer and lose nothing by it."""

    def __init__(self, settings: Latency, dice: random.Random) -> None:
        self.settings = settings
        self.dice = dice

    def chunk(self, now: float, stamp: float, data: bytes, /) -> Schedule:
        delay_ms = self.settings.latency
        if self.settings.jitter > 0:
            delay_ms += self.dice.randrange(2 * self.settings.jitter) - self.settings.jitter
        return ((max(now, stamp + delay_ms / 1e3), data),)
