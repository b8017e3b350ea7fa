"""Guards: the few measures that can be read off live traffic, held against their limit while the run goes on. Pure.

A guard needs a handful of outcomes before it trips, or the first failed request of a quiet second would end the run.
It looks at requests that have ended; one that hangs counts when its client gives up.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from chaos.journal.live import LiveWindow
from chaos.journal.record import Sample
from chaos.spec.model import Guard, Measure
from chaos.verdict.latency import share_of
from chaos.verdict.measures.degraded_ratio import DegradedRatio
from chaos.verdict.measures.shed_ratio import ShedRatio
from chaos.verdict.measures.success_ratio import SuccessRatio
from chaos.verdict.measures.ttft import Ttft
from chaos.verdict.sequential import STOP_AT, ChangeWatch
from chaos.verdict.statistics import quantile
from chaos.verdict.view import ANSWERED, SERVED, UNDECIDED, says
from chaos.verdict.wording import say

FEWEST_OUTCOMES = 10


@dataclass(frozen=True)
class Tripped:
    """A guard that was broken: its name, what was measured and the limit in words. A guard that knows what is usual
    adds how many outcomes it took, and how much more likely more trouble than usual is by now.
    """

    guard: str
    value: float
    bound: str
    samples: int | None = None
    likelihood_ratio: float | None = None


def guard_problem(measure: Measure) -> str | None:
    """Why this measure cannot be a guard, or None; asked while planning."""
    if isinstance(measure, LIVE):
        return None
    names = ", ".join(kind.name for kind in LIVE)
    return f"{measure.name} cannot be watched while the run goes on; a guard can use {names}"


def live_value(measure: Measure, recent: Sequence[Sample]) -> float | None:
    """The measure over recent final samples; None when fewer than FEWEST_OUTCOMES count. Inf for users who waited in
    vain.
    """
    load = getattr(measure, "load", None)
    if isinstance(measure, Ttft):
        rows = [s for s in recent if s.final and s.outcome != UNDECIDED and load in (None, s.load)]
        return _wait(measure, rows)
    hits = [hit for hit in (hit_of(measure, sample) for sample in recent) if hit is not None]
    return sum(hits) / len(hits) if len(hits) >= FEWEST_OUTCOMES else None


def hit_of(measure: Measure, sample: Sample) -> bool | None:
    """Whether a sample is a hit of a share, None when it does not count for it."""
    if not sample.final or sample.outcome == UNDECIDED or getattr(measure, "load", None) not in (None, sample.load):
        return None
    if isinstance(measure, DegradedRatio):
        return says(sample.degraded, measure.reason) if sample.outcome in ANSWERED else None
    if isinstance(measure, ShedRatio):
        return sample.outcome == "shed"
    return sample.outcome in SERVED if isinstance(measure, SuccessRatio) else None


def check_guard(guard: Guard, recent: Sequence[Sample]) -> Tripped | None:
    """Whether the guard is broken by the samples that ended within its `over`."""
    value = live_value(guard.measure, recent)
    if value is None:
        return None
    unit: str = guard.measure.unit
    if guard.below is not None and value < guard.below:
        return Tripped(guard_name(guard), value, f"not below {say(guard.below, unit)}")
    if guard.above is not None and value > guard.above:
        return Tripped(guard_name(guard), value, f"not above {say(guard.above, unit)}")
    return None


class Guards:
    """All guards of a run: samples in as they end, the first guard that is broken out."""

    def __init__(self, guards: Sequence[Guard], *, length_s: float = 0.0, moments: Iterable[float] = ()) -> None:
        """`length_s` is the planned length of the load, `moments` are those at which the plan changes something."""
        planned = tuple(moments)
        self._sliding = tuple(guard for guard in guards if guard.usual is None)
        self._known = tuple(_Known.of(guard, length_s, planned) for guard in guards if guard.usual is not None)
        self._live = LiveWindow(max((float(guard.over) for guard in self._sliding), default=0.0))

    def feed(self, sample: Sample) -> None:
        """Take one sample, roughly in order of `end_s`."""
        self._live.feed(sample)
        for known in self._known:
            known.feed(sample)

    def tripped(self, now_s: float) -> Tripped | None:
        """What is broken at this moment of the run."""
        sliding = (check_guard(guard, self._live.recent(now_s, float(guard.over))) for guard in self._sliding)
        known = (each.tripped() for each in self._known)
        return next((broken for broken in (*known, *sliding) if broken is not None), None)


@dataclass
class _Known:
    """A guard that says what is usual. Its time begins with the first request that was due."""

    guard: Guard
    watch: ChangeWatch
    began: float = math.inf

    @classmethod
    def of(cls, guard: Guard, length_s: float, moments: tuple[float, ...]) -> _Known:
        usual, limit = float(guard.usual or 0.0), _limit(guard)
        shares = (usual, limit) if guard.below is None else (1 - usual, 1 - limit)
        return cls(guard, ChangeWatch(*shares, length_s=length_s, moments=moments))

    def feed(self, sample: Sample) -> None:
        hit = hit_of(self.guard.measure, sample)
        self.began = min(self.began, sample.intended_s)
        if hit is not None:
            self.watch.see(sample.end_s - self.began, bad=hit == (self.guard.below is None))

    def tripped(self) -> Tripped | None:
        if self.watch.evidence < STOP_AT:
            return None
        samples, bad = self.watch.suspects
        share = bad / samples if samples else 0.0
        value, side = (share, "above") if self.guard.below is None else (1 - share, "below")
        unit = self.guard.measure.unit
        bound = f"not {side} {say(_limit(self.guard), unit)}, usually {say(self.guard.usual, unit)}"
        return Tripped(guard_name(self.guard), value, bound, samples, self.watch.evidence)


def _limit(guard: Guard) -> float:
    return float(guard.above or 0.0) if guard.below is None else float(guard.below)


LIVE: tuple[Any, ...] = (SuccessRatio, DegradedRatio, ShedRatio, Ttft)
"""Measures that a guard can use."""


def guard_name(guard: Guard) -> str:
    """`success_ratio of chat over 5s`; one that says what is usual slides no window: `success_ratio of chat`."""
    load = getattr(guard.measure, "load", None)
    name = f"{guard.measure.name} of {load}" if load else guard.measure.name
    return name if guard.usual is not None else f"{name} over {guard.over}"


def _wait(measure: Ttft, rows: Sequence[Sample]) -> float | None:
    if len(rows) < FEWEST_OUTCOMES:
        return None
    waits = [math.inf if s.first_token_s is None else s.first_token_s - s.intended_s for s in rows]
    return quantile(np.array(waits), share_of(measure.quantile))
