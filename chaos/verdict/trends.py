"""Is a series of slices going anywhere? A drift with an interval that is honest about slices that hang together.

A series that stays around a level is fitted by a straight line, whose doubt grows with the autocorrelation of what is
left (as many independent slices as n (1 - r) / (1 + r), r corrected for the bias that fitting a line gives it: Marriott
and Pope 1954). A line of requests far from empty and from full is a random walk instead: r is near 1, a straight fit
would be far too sure, and the steps from slice to slice are what is nearly independent (their long-run variance: Newey
and West 1987). Which of the two it is, r at the top of its own interval decides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from chaos.verdict.statistics import Floats

Z = 2.5758
"""Standard normal quantile for 99.5 % on one side: a trend is claimed for many runs, so it must rarely be luck."""

_FEWEST = 5
_KNOWN = 0.8
_WALKS = 0.8


@dataclass(frozen=True)
class Drift:
    """Change a slice, and where it truly lies."""

    value: float
    low: float
    high: float

    @property
    def rises(self) -> bool:
        """Surely more than nothing."""
        return self.low > 0

    @property
    def falls(self) -> bool:
        """Surely less than nothing."""
        return self.high < 0


def drift(values: Floats, *, walks: bool) -> Drift | None:
    """The drift of a series, which may be a random walk or cannot; None where too little of it is known."""
    known = values[np.isfinite(values)]
    if len(known) < max(_FEWEST, _KNOWN * len(values)):
        return None
    n, at = len(known), np.arange(len(known)) - (len(known) - 1) / 2
    slope = float(at @ known / (at @ at))
    rest = known - known.mean() - slope * at
    spread, r = math.sqrt(float(rest @ rest) / (n - 2)), _memory(rest)
    if walks and _may_walk(r, n):
        steps = np.diff(known)
        value, doubt = float(steps.mean()), math.sqrt(_long_run_variance(steps) / len(steps))
    else:
        value, doubt = slope, spread / math.sqrt(float(at @ at)) * math.sqrt((1 + r) / (1 - r))
    return Drift(value, value - Z * doubt, value + Z * doubt)


def _memory(rest: Floats) -> float:
    """Autocorrelation from one slice to the next, at least 0 and below 1."""
    total, n = float(rest @ rest), len(rest)
    if not total:
        return 0.0
    r = float(rest[1:] @ rest[:-1]) / total
    r += (2 + 4 * r) / n
    return min(0.99, max(0.0, r))


def _may_walk(r: float, n: int) -> bool:
    return r + 2 * math.sqrt(max(0.0, 1 - r * r) / n) > _WALKS


def _long_run_variance(steps: Floats) -> float:
    centred, n = steps - steps.mean(), len(steps)
    lags = math.isqrt(n)
    products = [float(centred[lag:] @ centred[: n - lag]) / n for lag in range(lags + 1)]
    weighted = sum(2 * (1 - lag / (lags + 1)) * product for lag, product in enumerate(products[1:], 1))
    return max(products[0] + weighted, 0.0)
