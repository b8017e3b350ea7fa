"""Which differences between two sides are real. Pure.

    not measured, or not to be trusted       ──► unknown
    one observation a side                   ──► real only across the bound: upheld here, refuted there
    intervals overlap                        ──► not shown
    apart, by less than the practical margin ──► not shown
    apart                                    ──► better or worse, by the side of the bound that is bad

Two intervals that are 95 % sure on each side lie apart by chance in about 2 of 100 comparisons when requests are
independent. Those of one run are not, they share its seconds; so between single runs a difference must also exceed a
practical margin, which alone keeps correlated noise from looking like news. The interval of a series holds the spread
between its runs, which are independent, and needs none; of two series the shares of runs that held count too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from chaos.comparing.side import Interval, Measured, Side

Change = Literal["better", "worse", "other", "not shown", "unknown"]
"""`other`: real, but the bound has two sides, so neither is better by itself."""

MARGIN = 0.1
"""Waits, factors and counts of single runs: this share of the first side's value."""
MARGIN_OF_SHARES = 0.005
"""Shares of single runs: half a point."""


@dataclass(frozen=True)
class Difference:
    """The last side against the first, for one hypothesis."""

    name: str
    change: Change
    why: str

    @property
    def real(self) -> bool:
        """Whether more than noise is shown."""
        return self.change in ("better", "worse", "other")


def differences(first: Side, last: Side) -> tuple[Difference, ...]:
    """One for each hypothesis of either side, in the order of the first."""
    names = dict.fromkeys((*first.hypotheses, *last.hypotheses))
    return tuple(_difference(name, first.hypotheses.get(name), last.hypotheses.get(name)) for name in names)


def regressed(found: tuple[Difference, ...]) -> bool:
    """Whether the last side is worse than the first for real."""
    return any(difference.change == "worse" for difference in found)


def _difference(name: str, first: Measured | None, last: Measured | None) -> Difference:
    if first is None or last is None:
        return Difference(name, "unknown", "only one side asked this")
    if first.interval is None or last.interval is None or first.value is None or last.value is None:
        return Difference(name, "unknown", "not measured on both sides")
    if not (first.trusted and last.trusted):
        return Difference(name, "unknown", "the preconditions of a side did not hold")
    change, why = _compare(first, last)
    return Difference(name, change, why)


def _compare(first: Measured, last: Measured) -> tuple[Change, str]:
    if first.single or last.single:
        return _of_single(first, last)
    if first.held and last.held and not _overlap(first.held, last.held):
        fewer = last.held[0] < first.held[0]
        return ("worse", "held in fewer runs") if fewer else ("better", "held in more runs")
    if _overlap(first.interval or _ANYTHING, last.interval or _ANYTHING):
        return "not shown", "the intervals overlap"
    if not (first.held and last.held) and abs(_gap(first, last)) < _margin(first):
        return "not shown", "apart, but by less than what matters"
    return _direction(first, last), "the intervals lie apart"


def _of_single(first: Measured, last: Measured) -> tuple[Change, str]:
    """One observation knows no spread, so only a bound that somebody chose can make a difference of it."""
    if first.value == last.value:
        return "not shown", "the same"
    if {first.truth, last.truth} != {"upheld", "refuted"}:
        return "unknown", "one observation a side; a series of runs would tell"
    return ("worse" if last.truth == "refuted" else "better"), "on the other side of the bound"


def _overlap(one: Interval, other: Interval) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


_ANYTHING: Interval = (-math.inf, math.inf)


def _gap(first: Measured, last: Measured) -> float:
    """How much larger the last value is; inf where one side waited without end."""
    before, after = first.value or 0.0, last.value or 0.0
    return 0.0 if before == after else after - before


def _margin(first: Measured) -> float:
    value = abs(first.value or 0.0)
    if first.unit == "ratio":
        return MARGIN_OF_SHARES
    return MARGIN * value if math.isfinite(value) else 0.0


def _direction(first: Measured, last: Measured) -> Change:
    bad = _bad_side(first.bound)
    if bad == 0:
        return "other"
    return "worse" if _gap(first, last) * bad > 0 else "better"


def _bad_side(bound: Mapping[str, float]) -> int:
    """1: more is worse, -1: less is worse, 0: both or neither."""
    return int("at_most" in bound) - int("at_least" in bound)
