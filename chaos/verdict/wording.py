"""Numbers as people read them, the same in every sentence of a verdict and a report."""

from __future__ import annotations

import math

from chaos.units import Duration
from chaos.verdict.view import Bound


def say(value: float | None, unit: str) -> str:
    """A value in the unit of its measure: `99.8%`, `412ms`, `1.5s`, `1.07`, `0`, `2 points worse`; `never` for an
    endless wait.
    """
    if value is None:
        return "-"
    if math.isinf(value):
        return "never" if unit == "duration" else "no limit"
    if unit == "points":
        return f"{abs(value) * 100:.3g} points {'better' if value < 0 else 'worse'}"
    if unit == "ratio":
        return f"{value * 100:.4g}%" if value != 0 else "0%"
    if unit == "duration":
        return str(Duration(float(f"{value:.3g}")))
    return f"{value:.4g}"


def say_found(value: float | None, interval: tuple[float, float], unit: str) -> str:
    """`99.8% (99.1% to 99.9%)`; one number where there is no doubt; `not within 36s` for what never came; `0 to 1` for
    what is one of the two.
    """
    if interval[0] == interval[1]:
        return say(interval[0], unit)
    if value is None and interval[1] < math.inf:
        return say_interval(interval, unit)
    if value is None:
        return f"not within {say(interval[0], unit)}" if interval[0] < math.inf else "never"
    return f"{say(value, unit)} ({say_interval(interval, unit)})"


def say_interval(interval: tuple[float, float], unit: str) -> str:
    """`99.1% to 99.9%`; `at least 12s` where the upper side is open."""
    low, high = interval
    if math.isinf(high):
        return f"at least {say(low, unit)}"
    return f"{say(low, unit)} to {say(high, unit)}"


def say_bound(bound: Bound, unit: str) -> str:
    """`at least 99%`, `at most 1.5s`, or both."""
    parts = [
        f"{words} {say(limit, unit)}"
        for words, limit in (("at least", bound.at_least), ("at most", bound.at_most))
        if limit is not None
    ]
    return " and ".join(parts) or "no bound"
