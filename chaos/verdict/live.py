"""Guards: the few measures that can be read off live traffic, held against their limit while the run goes on. Pure.

A guard needs a handful of outcomes before it trips, or the first failed request of a quiet second would end the run.
It looks at requests that have ended; one that hangs counts when its client gives up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from chaos.journal.record import Sample
from chaos.spec.model import Guard, Measure
from chaos.verdict.latency import share_of
from chaos.verdict.measures.degraded_ratio import DegradedRatio
from chaos.verdict.measures.shed_ratio import ShedRatio
from chaos.verdict.measures.success_ratio import SuccessRatio
from chaos.verdict.measures.ttft import Ttft
from chaos.verdict.statistics import quantile
from chaos.verdict.view import ANSWERED, SERVED, UNDECIDED, says
from chaos.verdict.wording import say

FEWEST_OUTCOMES = 10


@dataclass(frozen=True)
class Tripped:
    """A guard that was broken: its name, what was measured and the limit in words."""

    guard: str
    value: float
    bound: str


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
    rows = [s for s in recent if s.final and s.outcome != UNDECIDED and load in (None, s.load)]
    if isinstance(measure, Ttft):
        return _wait(measure, rows)
    if isinstance(measure, DegradedRatio):
        answers = [s for s in rows if s.outcome in ANSWERED]
        return _share(answers, lambda s: says(s.degraded, measure.reason))
    if isinstance(measure, ShedRatio):
        return _share(rows, lambda s: s.outcome == "shed")
    if isinstance(measure, SuccessRatio):
        return _share(rows, lambda s: s.outcome in SERVED)
    return None


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


LIVE: tuple[Any, ...] = (SuccessRatio, DegradedRatio, ShedRatio, Ttft)
"""Measures that a guard can use."""


def guard_name(guard: Guard) -> str:
    """`success_ratio of chat over 5s`."""
    load = getattr(guard.measure, "load", None)
    return f"{guard.measure.name} of {load} over {guard.over}" if load else f"{guard.measure.name} over {guard.over}"


def _share(rows: Sequence[Sample], hit: Callable[[Sample], bool]) -> float | None:
    return sum(map(hit, rows)) / len(rows) if len(rows) >= FEWEST_OUTCOMES else None


def _wait(measure: Ttft, rows: Sequence[Sample]) -> float | None:
    if len(rows) < FEWEST_OUTCOMES:
        return None
    waits = [math.inf if s.first_token_s is None else s.first_token_s - s.intended_s for s in rows]
    return quantile(np.array(waits), share_of(measure.quantile))
