"""How far noise alone moves a difference: whole blocks of time drawn again, as neighbours in time share their fate.

    requests ─► slices of time ─► blocks (several slices in a row) ─► drawn with replacement ─► what it could have been

Requests that are due together wait together, so single requests are no independent draws: tests that take them as such
call two halves of one quiet hour different. How long a block has to be the data say: four times the integrated
autocorrelation time of the level of the slices, which is where intervals of AR(1) noise hold what they promise
(`make soak` measures it, matrix `aa`). Blocks are circular (Politis and Romano 1992), and the percentiles are those of
an expanded interval (Hesterberg 2015, section 5.3), which makes good that few blocks vary less than the truth does.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from chaos.verdict.statistics import Floats, Integers, student, wilson

FEWEST_SLICES = 5
FEWEST_BLOCKS = 6
"""Blocks grow no longer than leaves this many of them, nor is a share of them meaningful below."""

_TAIL = 0.05
_RESAMPLES = 600
_GRID = 128
_REACH = 40.0
_CORRELATION_TIMES = 4.0
_SOKAL_WINDOW = 5.0
_NORMAL = NormalDist()


@dataclass(frozen=True)
class Draws:
    """`times[i, s]` is how often draw `i` took the block that begins with slice `s`; blocks are `length` slices."""

    times: Floats
    length: int

    @property
    def blocks(self) -> float:
        """How many blocks fit into the time that was seen."""
        return float(self.times.shape[1] / self.length)

    def sums(self, per_slice: Floats) -> Floats:
        """Sums over each draw of columns that have one row a slice."""
        around = np.concatenate((per_slice, per_slice[: self.length - 1])).astype(np.float64)
        running = np.concatenate((np.zeros((1, per_slice.shape[1])), np.cumsum(around, axis=0)))
        blocks = running[self.length :] - running[: -self.length]
        return np.asarray(self.times @ blocks.astype(np.float32), dtype=np.float64)


def block_length(level: Floats) -> int:
    """Slices in a block, from the level of each slice in order of time."""
    longest = max(1, len(level) // FEWEST_BLOCKS)
    return min(longest, math.ceil(_CORRELATION_TIMES * correlation_time(level) - 1e-9))


def correlation_time(level: Floats) -> float:
    """Integrated autocorrelation time in slices, 1 for white noise; summed up to five times itself (Sokal 1997)."""
    around = level - level.mean()
    energy = float(around @ around)
    if len(level) < FEWEST_SLICES or energy <= 1e-12 * float(level @ level):
        return 0.25  # nothing to see: blocks of one slice
    spectrum = np.fft.rfft(around, 2 * len(around))
    correlation = np.fft.irfft(spectrum * np.conj(spectrum))[: len(around)] / energy
    total = 1.0
    for lag in range(1, len(level) // 3 + 1):
        total += 2 * float(correlation[lag])
        if lag >= _SOKAL_WINDOW * total:
            break
    return max(total, 0.25)


def draw(dice: np.random.Generator, slices: int, length: int) -> Draws:
    """As many blocks as fill the time that was seen, again and again."""
    starts = dice.integers(0, slices, size=(_RESAMPLES, math.ceil(slices / length)))
    flat = (starts + slices * np.arange(_RESAMPLES)[:, None]).ravel()
    times = np.bincount(flat, minlength=_RESAMPLES * slices).reshape(_RESAMPLES, slices)
    return Draws(times.astype(np.float32), length)


def quantiles(values: Floats, slice_of: Integers, draws: Draws, q: float) -> Floats:
    """The quantile of every draw, to the resolution of 128 of the values around it; inf is a value like any other."""
    order = np.argsort(values, kind="stable")
    n, slices = len(values), draws.times.shape[1]
    nearest = max(0, math.floor(q * n - _REACH * math.sqrt(q * (1 - q) * n)))
    farthest = min(n - 1, math.ceil(q * n + _REACH * math.sqrt(q * (1 - q) * n)))
    ranks = np.unique(np.append(np.linspace(nearest, farthest, _GRID).astype(np.int64), n - 1))
    cell = np.searchsorted(ranks, np.arange(n)) + len(ranks) * slice_of[order]
    counts = np.bincount(cell, minlength=slices * len(ranks)).reshape(slices, len(ranks))
    up_to = draws.sums(np.cumsum(counts, axis=1).astype(np.float64))
    reached = up_to >= q * up_to[:, -1:] - 1e-6 * n
    return np.asarray(values[order][ranks[reached.argmax(axis=1)]], dtype=np.float64)


def interval(replicas: Floats, freedom: float, blocks: float) -> tuple[float, float]:
    """One-sided 95 % on each side. What a draw could not tell (inf over inf) counts against both sides."""
    tail = 1 - _NORMAL.cdf(student(_TAIL, freedom) * math.sqrt(blocks / (blocks - 1)))
    rank = math.floor(tail * len(replicas))
    low = np.sort(np.where(np.isnan(replicas), -math.inf, replicas))[rank]
    high = np.sort(np.where(np.isnan(replicas), math.inf, replicas))[-1 - rank]
    return float(low), float(high)


def share_difference(
    shares: tuple[float, float], sizes: tuple[float, float], z: float, correlation: float = 0.0
) -> tuple[float, float]:
    """Interval of the first share minus the second: Newcombe's hybrid of two score intervals (1998, method 10).

    Honest at 0 % and 100 %, where a bootstrap sees no spread at all. `sizes` are effective numbers of requests.
    """
    (low, high), (control_low, control_high) = (wilson(p * n, n, z) for p, n in zip(shares, sizes, strict=True))
    p, c = shares
    down, up = (p - low, control_high - c), (high - p, c - control_low)
    return p - c - _across(*down, correlation), p - c + _across(*up, correlation)


def _across(a: float, b: float, correlation: float) -> float:
    return math.sqrt(max(0.0, a * a - 2 * correlation * a * b + b * b))
