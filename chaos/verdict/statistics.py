"""How sure a number is: intervals for shares, quantiles and ratios, and how much more data would settle a doubt.

Every interval is one-sided 95 % on each side (90 % two-sided), because a bound looks at one side only. When the truth
sits exactly on the bound a claim is wrongly upheld, or wrongly refuted, about one time in twenty; counts are grainy, so
at a bound of 99 % it can be 7 % (upheld) or 10 % (refuted) for single sizes. Away from the bound it is far less.
Everything is deterministic: resampling draws from a generator with a fixed seed.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Z = 1.6449
"""Standard normal quantile for 95 % on one side."""

_TAIL = 0.05
_RESAMPLES = 2000
_SEED = 20261130
_FARTHEST = 40.0
_STEPS = 8192

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def wilson(successes: float, n: float, z: float = Z) -> tuple[float, float]:
    """Score interval of a share (Wilson 1927): honest at 0 % and 100 % and for small `n`. `n` must be positive; a
    fraction is the effective number of requests that share their fate.
    """
    share = successes / n
    spread = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    centre, scale = share + z * z / (2 * n), 1 + z * z / n
    low = 0.0 if successes == 0 else (centre - spread) / scale
    high = 1.0 if successes == n else (centre + spread) / scale
    return low, high


def requests_to_settle(share: float, bound: float, z: float = Z) -> int | None:
    """Sample size at which the Wilson interval of `share` clears `bound`; None when the share sits on the bound.

    The score interval excludes `bound` exactly when |share - bound| >= z * sqrt(bound * (1 - bound) / n), solved here
    for n.
    """
    distance = abs(share - bound)
    if distance < 1e-9 or not 0 < bound < 1:
        return None
    return math.ceil(z * z * bound * (1 - bound) / (distance * distance) - 1e-9)


def student(tail: float, freedom: float) -> float:
    """Upper quantile of Student's t, for one degree of freedom or more, whole or not.

    The angle atan(t / sqrt(freedom)) has a density in proportion to cos(angle) ** (freedom - 1), summed here by the
    midpoint rule over the part of the half circle that holds anything.
    """
    reach = min(math.pi / 2, _FARTHEST / math.sqrt(freedom))
    edges = np.linspace(0.0, reach, _STEPS + 1)
    parts = np.cos((edges[1:] + edges[:-1]) / 2) ** (freedom - 1)
    inside = np.concatenate(([0.0], np.cumsum(parts)))
    return math.sqrt(freedom) * math.tan(float(np.interp((1 - 2 * tail) * inside[-1], inside, edges)))


def binomial_cumulative(n: int, q: float) -> Floats:
    """P(X <= k) for k = 0..n, X ~ Binomial(n, q), by log ratios so that no term under- or overflows."""
    k = np.arange(n, dtype=np.float64)
    steps = np.log((n - k) / (k + 1)) + math.log(q / (1 - q))
    logs = n * math.log(1 - q) + np.concatenate(([0.0], np.cumsum(steps)))
    return np.cumsum(np.exp(logs))


def rank_of(n: int, q: float) -> int:
    """Which of `n` values in order is their quantile, from 1: the first that a share `q` of all does not exceed."""
    return max(1, math.ceil(q * n - 1e-9))


def quantile(values: Floats, q: float) -> float:
    """The smallest value that at least a share `q` of all values do not exceed; no interpolation, so inf is welcome."""
    place = rank_of(len(values), q) - 1
    return float(np.partition(values, place)[place])


def interval_ranks(n: int, q: float, units: int) -> tuple[int | None, int | None]:
    """The ranks (from 1) of `n` values between which their true quantile lies; None where no rank is extreme enough.

    The number of values below the true quantile is binomial, so two ranks hold the quantile between them whatever the
    distribution (David and Nagaraja, Order Statistics, section 7.1). `units` is the number of independent units when
    the values come in clusters (token gaps of one request).
    """
    cumulative = binomial_cumulative(units, q)
    low_rank = int(np.searchsorted(cumulative, _TAIL, side="right"))
    high_rank = int(np.searchsorted(cumulative, 1 - _TAIL, side="left")) + 1
    scale = n / units
    low = math.ceil(low_rank * scale) if low_rank else None
    return low, None if high_rank > units else min(n, math.ceil(high_rank * scale))


def quantile_interval(values: Floats, q: float, independent: int | None = None) -> tuple[float, float]:
    """Distribution-free interval of a quantile from order statistics (`interval_ranks`); `values` must not be empty.

    An open side is 0 below, inf above. `independent` is the number of independent units, where values are clustered.
    """
    n = len(values)
    low, high = interval_ranks(n, q, min(n, independent or n))
    ordered = np.partition(values, [rank - 1 for rank in (low, high) if rank is not None] or [0])
    return (
        0.0 if low is None else float(ordered[low - 1]),
        math.inf if high is None else float(ordered[high - 1]),
    )


def bootstrap_ratio(
    above: tuple[Floats, Floats], below: tuple[Floats, Floats], resamples: int = _RESAMPLES
) -> tuple[float, float]:
    """Interval of (sum a / sum b) / (sum c / sum d) with `above` = (a, b), `below` = (c, d), each per time slice.

    Whole slices are drawn with replacement, numerator and denominator together: requests that share a second share
    its fate, so single requests are not independent but seconds nearly are.
    """
    dice = np.random.default_rng(_SEED)
    ratios = _resampled(dice, above, resamples) / _resampled(dice, below, resamples)
    ratios = ratios[np.isfinite(ratios)]
    if not len(ratios):
        return 0.0, math.inf
    low, high = np.quantile(ratios, (_TAIL, 1 - _TAIL))
    return float(low), float(high)


def _resampled(dice: np.random.Generator, pair: tuple[Floats, Floats], resamples: int) -> Floats:
    over, under = pair
    drawn = dice.integers(0, len(over), size=(resamples, len(over)))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(over[drawn].sum(axis=1) / under[drawn].sum(axis=1), dtype=np.float64)
