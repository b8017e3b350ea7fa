"""`slicer`: a chunk leaves in small pieces with a pause after each, as over a link with a tiny packet size."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import ClassVar

from chaos.proxy.toxics.stub import Plain, Schedule, Stub
from chaos.settings import setting


@dataclass
class Slicer(Plain):
    """Bytes, bytes, microseconds."""

    kind: ClassVar[str] = "slicer"
    go_name: ClassVar[str] = "SlicerToxic"
    go_int: ClassVar[str] = "int"
    average_size: int = setting("size of a piece on average, bytes; less than 1 counts as 1", default=0)
    size_variation: int = setting("greatest deviation of a cut, bytes", default=0)
    delay: int = setting("pause after each piece, us", default=0)

    def stub(self, dice: random.Random, /) -> Stub:
        return SlicerStub(self, dice)


class SlicerStub(Stub):
    """Passes piece after piece; the pause follows the last one too."""

    def __init__(self, settings: Slicer, dice: random.Random) -> None:
        self.settings = settings
        self.dice = dice

    def chunk(self, now: float, _stamp: float, data: bytes, /) -> Schedule:
        pause_s = max(0, self.settings.delay) / 1e6
        schedule: list[tuple[float, bytes]] = []
        for start, end in self._cuts(len(data)):
            schedule.append((now, data[start:end]))
            now += pause_s
            schedule.append((now, b""))
        return schedule

    def _cuts(self, length: int) -> list[tuple[int, int]]:
        """Halve until every piece is at most average + variation long; each cut stays inside its piece, so it ends."""
        average, variation = max(1, self.settings.average_size), max(0, self.settings.size_variation)
        pieces: list[tuple[int, int]] = []
        open_ = [(0, length)]
        while open_:
            start, end = open_.pop()
            if end - start <= average + variation:
                pieces.append((start, end))
                continue
            shift = self.dice.randrange(2 * variation) - variation if variation else 0
            middle = min(max(start + (end - start) // 2 + shift, start + 1), end - 1)
            open_ += [(middle, end), (start, middle)]
        return pieces
