"""The course of a run: what users asked for and got, step by step, thin enough to draw.

A step is one second; a long run has longer ones, so that a picture of a day is no bigger than one of a minute. The
requests of a step are those that were *due* in it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from chaos.journal.record import OUTCOMES
from chaos.journal.tables import Floats, Integers
from chaos.report.facts import Facts
from chaos.verdict.counters import WAITING
from chaos.verdict.latency import ttft_s
from chaos.verdict.shares import SUCCESS
from chaos.verdict.signals import share_signal, wait_signal

_STEPS_S = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400)


@dataclass(frozen=True)
class Course:
    """One entry a step in every array. `waits` are quantiles of the time to first token: nan where nobody asked, inf
    where the quantile waited in vain.
    """

    step_s: int
    outcomes: Mapping[str, Integers]
    served: Floats
    p50: Floats
    p99: Floats

    @property
    def due(self) -> Integers:
        """Requests due in each step."""
        return np.asarray(np.sum(list(self.outcomes.values()), axis=0), dtype=np.int64)

    @property
    def length_s(self) -> int:
        """Seconds that the steps cover."""
        return self.step_s * len(self.served)


def course_of(facts: Facts, most_steps: int) -> Course | None:
    """The whole seconds of the load in at most `most_steps` steps; None where there was not one second of load."""
    start, end = facts.times.load_start, facts.times.load_end
    if start is None or end is None or end - start < 1:
        return None
    seconds = int(end - start)
    step = next((s for s in _STEPS_S if seconds / s <= most_steps), _STEPS_S[-1])
    samples, count = facts.evidence.samples, math.ceil(seconds / step)
    due = samples.intended_s - start
    rows = np.flatnonzero(samples.final & (due >= 0) & (due < seconds))
    rows = rows[np.argsort(due[rows], kind="stable")]
    places = (due[rows] / step).astype(np.int64)
    outcomes = samples.outcome[rows]
    parts = np.split(rows, np.searchsorted(places, np.arange(1, count)))
    success, median, tail = (
        np.array([reduce(part) for part in parts], dtype=np.float64)
        for reduce in (
            share_signal(SUCCESS, rising_is_good=True).reduce(samples),
            wait_signal(ttft_s, 0.5).reduce(samples),
            wait_signal(ttft_s, 0.99).reduce(samples),
        )
    )
    ended = {name: np.bincount(places[outcomes == name], minlength=count).astype(np.int64) for name in OUTCOMES}
    return Course(step, ended, success, median, tail)


def queues_of(facts: Facts, course: Course) -> Mapping[str, Floats]:
    """The deepest that each queue was in each step, by a name for people; queues that never held anybody are left out.
    nan where nobody read it.
    """
    count, readings = len(course.served), facts.evidence.readings
    found: dict[str, Floats] = {}
    for gauge in WAITING:
        points = readings.select(gauge)
        steps = np.floor((points.t - facts.zero) / course.step_s)
        for target in sorted(set(points.target.tolist())):
            inside = (points.target == target) & (steps >= 0) & (steps < count)
            depth = np.full(count, np.nan)
            np.fmax.at(depth, steps[inside].astype(np.int64), points.value[inside])
            if np.nansum(depth) > 0:
                found[str(target)] = depth
    return found
