"""Pauses between tokens as a sketch: counts in buckets that grow by two percent, so that every pause is known to one
percent and a stream of any length takes little room (DDSketch: Masson, Rim, Lee, VLDB 2019).

    bucket 0              at most a microsecond: pieces that came with one read; told as 0
    bucket b, 0 < b       GAMMA**(b-1) to GAMMA**b microseconds, told as 2 * GAMMA**b / (GAMMA + 1) of them
    bucket NEVER          a pause that did not end

GAMMA is 1.01 / 0.99. Two sketches are merged by adding the counts of each bucket; nothing is lost by merging.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Self

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

ERROR = 0.01
"""The most by which a pause is told too long or too short, relative to itself."""

GAMMA = (1 + ERROR) / (1 - ERROR)
UNIT_S = 1e-6
NEVER = 2**15 - 1

_LOG_GAMMA = math.log(GAMMA)
_ROW = 16  # bits below the row number in a key: NEVER fits


def buckets_of(pauses_s: Floats) -> Integers:
    """The bucket of each pause. Seconds; inf is a pause that did not end."""
    with np.errstate(divide="ignore"):
        exponents = np.ceil(np.log(np.maximum(pauses_s, 0.0) / UNIT_S) / _LOG_GAMMA)
    return np.clip(exponents, 0, NEVER).astype(np.int64)


def bounds_of(buckets: Integers) -> tuple[Floats, Floats, Floats]:
    """Seconds for each bucket: the least that a pause in it can be, what it is told as, the most."""
    high = UNIT_S * np.exp(_LOG_GAMMA * buckets)
    low, told = high / GAMMA, high * (2 / (GAMMA + 1))
    for side in (low, told):
        side[buckets == 0] = 0.0
    for side in (low, told, high):
        side[buckets == NEVER] = math.inf
    return low, told, high


def sketches(rows: Sequence[Sequence[float]]) -> tuple[Integers, Integers, Integers]:
    """One sketch a row: where each begins and the last one ends, and all their buckets and counts, one behind the
    other.
    """
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    found = buckets_of(np.fromiter(chain.from_iterable(rows), np.float64, int(lengths.sum())))
    keys, counts = np.unique((np.repeat(np.arange(len(rows)), lengths) << _ROW) | found, return_counts=True)
    ends = np.searchsorted(keys, np.arange(len(rows) + 1) << _ROW)
    return ends, keys & ((1 << _ROW) - 1), counts


@dataclass(frozen=True)
class Pauses:
    """Counted pauses, the shortest first. Each is known to lie between `low` and `high` and is told as `value`."""

    low: Floats
    value: Floats
    high: Floats
    count: Integers

    @classmethod
    def counted(cls, per_bucket: npt.NDArray[np.int64]) -> Self:
        """From the number of pauses in bucket 0, 1, 2 and so on."""
        buckets = np.flatnonzero(per_bucket)
        return cls(*bounds_of(buckets), per_bucket[buckets])

    @classmethod
    def exact(cls, pauses_s: Floats) -> Self:
        """From single pauses, as evidence of before sketches has them."""
        values, count = np.unique(np.asarray(pauses_s, dtype=np.float64), return_counts=True)
        return cls(values, values, values, count)

    def and_never(self, count: int) -> Pauses:
        """These and so many more that did not end."""
        if not count:
            return self
        low, value, high = (np.append(side, math.inf) for side in (self.low, self.value, self.high))
        return Pauses(low, value, high, np.append(self.count, count))

    def __len__(self) -> int:
        """Pauses."""
        return int(self.count.sum())

    def at(self, rank: int) -> int:
        """Where the pause of this rank stands, from 1 for the shortest."""
        return int(np.searchsorted(np.cumsum(self.count), rank))
