"""Recovered, slow or stuck? What became of a stack when its trigger was gone, decided from the course of the run.

    RECOVERED  five slices in a row as good as the baseline, without a relapse
    SLOW       still down, and surely on its way: goodput rises, or the line shrinks; with the time it still needs
    STUCK      down, watched for longer than it can take, and going nowhere
    UNKNOWN    anything else, with what would settle it

Who waits in a line that is too long is served too late until the very end of a recovery, so goodput alone stays at zero
and says nothing: the line has to be looked at, and where nobody read it, capacity has to be known (reference: Huang et
al., OSDI 2022; the formula of `chaos.tipping.predict.recovery_s`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from chaos.tipping.predict import recovery_s
from chaos.verdict.course import Course, Stretch
from chaos.verdict.loops import Suspect, is_long, suspects
from chaos.verdict.returning import back_since
from chaos.verdict.statistics import Floats, bootstrap_ratio
from chaos.verdict.trends import Drift, drift

State = Literal["recovered", "slow", "stuck", "unknown"]

GOOD_AS_BEFORE = 0.95
IN_A_ROW = 5
_DOWN = 0.9
_STEADY = 0.8
_WIDEST = 0.5
_NOISE_QUANTILE = 0.95
_LOAD_WITHIN = 0.25
_PATIENCES = 10
_FEWEST_SLICES = 20
_BEYOND = 3
_MUCH_LONGER = 4
_SOME_DAY = 10
_FEWEST_TAIL = 10


@dataclass(frozen=True)
class Diagnosis:
    """What became of it. `kept` is goodput after over before at the end of the run, with its interval; `took_s` from
    the trigger's end to the return, `more_s` what a slow one still needs, `predicted_s` the formula's answer.
    """

    state: State
    kept: tuple[float, float, float]
    watched_s: float
    trigger_s: float
    took_s: float | None = None
    more_s: float | None = None
    predicted_s: float | None = None
    loops: tuple[Suspect, ...] = ()
    doubt: str = ""
    to_settle: str | None = None


@dataclass(frozen=True)
class _Heading:
    """Where the end of the run is going: drifts a slice, and slices until all is well at that pace."""

    goodput: Drift | None
    line: Drift | None
    short_of: float
    waiting: float
    matters: bool
    watched: int

    @property
    def improves(self) -> bool:
        """Surely on its way, and at a pace that leads somewhere."""
        return self.slices_left() < _SOME_DAY * self.watched

    @property
    def _shrinks(self) -> bool:
        return self.matters and self.line is not None and self.line.falls

    def slices_left(self) -> float:
        """At the pace that was seen; the line is the better witness."""
        if self.line is not None and self._shrinks:
            return self.waiting / -self.line.value
        return self.short_of / self.goodput.value if self.goodput and self.goodput.rises else math.inf

    def may_return(self) -> bool:
        """Whether what was seen leaves room for a return within about as long again as was watched. A line hides its
        end: it is given four times as long.
        """
        goodput = self.goodput is not None and self.goodput.high * self.watched > self.short_of
        longer = _MUCH_LONGER * self.watched
        line = self.matters and self.line is not None and -self.line.low * longer > self.waiting
        return goodput or line


def diagnose(course: Course, capacity_per_s: float | None = None) -> Diagnosis:
    """Decide. `capacity_per_s`: what the stack can serve, for those who know; else the line decides."""
    before, after, slice_s = course.before, course.after, course.slice_s
    watched_s, level = len(after) * slice_s, float(before.served.sum() / before.due.sum())
    tail = after.last(max(_FEWEST_TAIL, len(after) // 2))
    if level < _STEADY:
        doubt = f"the baseline itself was no steady state ({level:.0%} served)"
        return Diagnosis("unknown", (math.nan, 0.0, math.inf), watched_s, course.trigger_s, doubt=doubt)
    told = Diagnosis(
        state="unknown",
        kept=_kept(before, tail),
        watched_s=watched_s,
        trigger_s=course.trigger_s,
        predicted_s=_predicted(course, tail, capacity_per_s),
        loops=suspects(before, tail),
    )
    came_back = back_since((after.share() >= level - _margin(before, level)).tolist(), IN_A_ROW)
    if came_back is not None:
        return replace(told, state="recovered", took_s=came_back * slice_s, loops=())
    if wrong := _load_differs(before, tail):
        return replace(told, doubt=wrong, to_settle="a load after the trigger that is the baseline's")
    heading = _heading(course, tail, level)
    if heading.improves:
        return replace(told, state="slow", more_s=heading.slices_left() * slice_s)
    return _stuck_or_unknown(told, course, heading, capacity_per_s)


def _stuck_or_unknown(told: Diagnosis, course: Course, heading: _Heading, capacity_per_s: float | None) -> Diagnosis:
    """Not back, and not seen to be on its way: was it watched long enough, and by whom?"""
    if told.kept[2] >= _DOWN:
        return replace(told, doubt="goodput is hardly down", to_settle="a longer recovery window, or a higher rate")
    longer = _long_enough(told, course, heading)
    if told.watched_s < longer:
        return replace(told, doubt="not watched for long enough", to_settle=f"at least {longer:.0f}s after the trigger")
    if heading.line is None and capacity_per_s is None:
        blind = "nobody read how many requests wait, and a long line hides a recovery until its very end"
        return replace(told, doubt=blind, to_settle="a queue gauge, or `capacity` of this measure")
    if heading.may_return():
        return replace(told, doubt="the trend is not clear", to_settle="a longer recovery window")
    return replace(told, state="stuck")


def _kept(before: Stretch, tail: Stretch) -> tuple[float, float, float]:
    """Goodput after over before at equal load: value, low, high."""
    if not tail.due.sum():
        return math.nan, 0.0, math.inf
    value = (tail.served.sum() / tail.due.sum()) / (before.served.sum() / before.due.sum())
    low, high = bootstrap_ratio((tail.served, tail.due), (before.served, before.due))
    return float(value), low, high


def _margin(before: Stretch, level: float) -> float:
    """How much below its level an undisturbed slice may lie."""
    worse = level - before.share()
    noise = float(np.nanquantile(worse, _NOISE_QUANTILE))
    return min(max((1 - GOOD_AS_BEFORE) * level, noise), _WIDEST * level)


def _load_differs(before: Stretch, tail: Stretch) -> str:
    usual, now = before.due.mean(), tail.due.mean()
    allowed = _LOAD_WITHIN * usual + 3 * math.sqrt(usual / len(tail) + usual / len(before))
    return f"the load is {now / usual:.2f} times the baseline's" if abs(now - usual) > allowed else ""


def _heading(course: Course, tail: Stretch, level: float) -> _Heading:
    """A line that shrinks does so as soon as the first resends have come (a quarter of the run is left out for them),
    goodput comes back when it comes back. A short line keeps nobody waiting: its ups and downs say nothing.
    """
    share = tail.share()
    line = drift(course.after.waiting[len(course.after) // 4 :], walks=True)
    return _Heading(
        goodput=drift(share, walks=False),
        line=line,
        short_of=max(0.0, GOOD_AS_BEFORE * level - float(np.nanmean(_end(share)))),
        waiting=float(np.nanmean(_end(tail.waiting))) if line else math.nan,
        watched=len(course.after),
        matters=is_long(course.before.waiting, tail.waiting),
    )


def _end(values: Floats) -> Floats:
    return values[-_CLOSE:] if np.isfinite(values[-_CLOSE:]).any() else values


_CLOSE = 3
"""Slices that say where a series stands now."""


def _predicted(course: Course, tail: Stretch, capacity_per_s: float | None) -> float | None:
    """Formula 3 from the run's own numbers; None where the line or the patience of clients is not known."""
    if course.timeout_s is None or not math.isfinite(course.backlog):
        return None
    capacity = max(course.busiest_per_s, capacity_per_s or 0.0)
    offered = float(tail.sends.mean()) / course.slice_s
    return recovery_s(course.backlog, capacity, course.timeout_s, offered)


def _long_enough(told: Diagnosis, course: Course, heading: _Heading) -> float:
    """Ten times the patience of clients, twenty slices, and what the formula says: three times where it is all there
    is, once where the line was read, not at all where the line grows and so refutes it.
    """
    least = max(_PATIENCES * (course.timeout_s or 0.0), _FEWEST_SLICES * course.slice_s)
    if told.predicted_s is None or not math.isfinite(told.predicted_s):
        return least
    if heading.line is None:
        return max(least, _BEYOND * told.predicted_s)
    return least if heading.line.rises else max(least, told.predicted_s)
