"""How sure a count of runs makes us. Runs are the independent units: each has a seed, and so a load, of its own.

All bounds are at 95 % on one side, as everywhere else.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from chaos.verdict.statistics import Z, student, wilson

_SURE = 0.95


def rarer_than(runs: int) -> float:
    """The share of failing runs above which `runs` runs without a failure would have shown one with 95 % probability:
    1 - 0.05^(1/n), exactly what the rule of three (3/n) approximates. 1 for no run.
    """
    return 1.0 - (1.0 - _SURE) ** (1.0 / runs) if runs else 1.0


def confidence(runs: int, share: float) -> float:
    """How likely `runs` runs would have shown a failure that strikes this share of them: 1 - (1 - p)^n."""
    return 1.0 - (1.0 - share) ** runs


def runs_to_exclude(share: float) -> int:
    """Runs without a failure after which a larger share of failing runs is excluded at 95 %."""
    return math.ceil(math.log(1.0 - _SURE) / math.log(1.0 - share) - 1e-9)


def share_of_clusters(hits: Sequence[int], sizes: Sequence[int]) -> tuple[float, float]:
    """Interval of sum(hits) / sum(sizes) when each pair comes from one run; at least one size must be positive.

    Requests of one run share its fate, so the spread between runs decides: Wilson's interval at the number of
    independent requests that would spread as much, lessened for how badly few runs know their own spread (Korn and
    Graubard 1998). Never narrower than requests alone would make it; one run has no spread, so it has theirs.
    """
    total, runs = sum(sizes), len(sizes)
    share = sum(hits) / total
    if runs == 1:
        return wilson(hits[0], total)
    off = sum((h - share * n) ** 2 for h, n in zip(hits, sizes, strict=True))
    alone = share * (1 - share) * total
    clustering = max(1.0, off * runs / (runs - 1) / alone) if alone else 1.0
    independent = total / clustering * (Z / student(1 - _SURE, runs - 1)) ** 2
    return wilson(share * independent, independent)
