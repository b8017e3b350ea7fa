"""A signal second by second: what users felt, cut into slices, and what "worse" means for it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chaos.journal.tables import SampleTable
from chaos.verdict.shares import Share
from chaos.verdict.statistics import Floats, quantile
from chaos.verdict.view import View, decided
from chaos.verdict.windows import Window

SLICE_S = 1.0

_SHARE_FLOOR = 0.02
_SHARE_WIDEST = 0.25
_WAIT_FLOOR_SHARE = 0.5
_WAIT_FLOOR_S = 0.1
_STEADY_SHARE = 0.90
_WAIT_QUANTILE = 0.90

Rows = NDArray[np.int64]
Reduce = Callable[[Rows], float]


@dataclass(frozen=True)
class Signal:
    """`reduce` makes, once per table, a function from row numbers to one number (NaN for none that counts); `bad` tells
    how much each row speaks against the stack, 0 for not at all.

    `floor` is the least margin around a baseline level, `widest` the most that noise may make of it, `steady` says
    whether such a level is a steady state at all.
    """

    reduce: Callable[[SampleTable], Reduce]
    bad: Callable[[SampleTable], Floats]
    rising_is_good: bool
    floor: Callable[[float], float]
    steady: Callable[[float], bool]
    widest: Callable[[float], float] = lambda _: math.inf

    def level(self, view: View, load: str | None, window: Window) -> float | None:
        """One number for a whole window; None when nothing was due in it."""
        level = self.reduce(view.evidence.samples)(np.flatnonzero(view.requests(load, window)))
        return None if math.isnan(level) else level

    def slices(self, view: View, load: str | None, start: float, end: float) -> Floats:
        """One number for each whole second from `start` on; NaN where nothing was due."""
        samples = view.evidence.samples
        count = max(0, math.floor((end - start) / SLICE_S + 1e-9))
        rows = np.flatnonzero(view.requests(load, Window("slices", ((start, start + count * SLICE_S),))))
        rows = rows[np.argsort(samples.intended_s[rows], kind="stable")]
        edges = start + SLICE_S * np.arange(1, count)
        value = self.reduce(samples)
        parts = np.split(rows, np.searchsorted(samples.intended_s[rows], edges)) if count else []
        return np.array([value(part) for part in parts], dtype=np.float64)

    def worse_by(self, values: Floats, level: float) -> Floats:
        """How much worse than `level`; NaN stays NaN and so compares as not back."""
        return level - values if self.rising_is_good else values - level


def share_signal(share: Share, *, rising_is_good: bool) -> Signal:
    """A share; the least margin is 2 points, and a baseline more than 10 points from ideal is no steady state."""

    def reduce(samples: SampleTable) -> Reduce:
        counted = share.counts(samples)
        hits = counted & share.hits(samples)
        return lambda rows: hits[rows].sum() / n if (n := int(counted[rows].sum())) else math.nan

    def bad(samples: SampleTable) -> Floats:
        against = share.counts(samples) & (share.hits(samples) != rising_is_good)
        return np.where(against, 1.0, 0.0)

    def steady(level: float) -> bool:
        return (level if rising_is_good else 1 - level) >= _STEADY_SHARE

    return Signal(reduce, bad, rising_is_good, lambda _: _SHARE_FLOOR, steady, lambda _: _SHARE_WIDEST)


def wait_signal(waits: Callable[[SampleTable], Floats], q: float = _WAIT_QUANTILE) -> Signal:
    """A quantile of a wait, by default p90: tails of one second are noise, medians hide every tenth user.

    The least margin is half of the level and a tenth of a second: less is not felt, and a shared machine moves the p90
    of one second by as much without any fault.
    """

    def reduce(samples: SampleTable) -> Reduce:
        felt, known = waits(samples), decided(samples)
        return lambda rows: quantile(felt[kept], q) if len(kept := rows[known[rows]]) else math.nan

    def bad(samples: SampleTable) -> Floats:
        return np.where(decided(samples), waits(samples), 0.0)

    return Signal(reduce, bad, rising_is_good=False, floor=_wait_floor, steady=math.isfinite)


def _wait_floor(level: float) -> float:
    return max(_WAIT_FLOOR_SHARE * level, _WAIT_FLOOR_S)
