"""The course of a run, slice by slice, before the trigger and after it was gone: what users asked and got, how often
they asked, and what the stack's own gauges say of its line, its cache and its breakers.

What a loop of failures lives on shows here and nowhere else: attempts a request, the line, the hit ratio, the share of
time for which a breaker refused. A series that nobody read is NaN throughout, and proves nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from chaos.verdict.counters import CALLS, WAITING, Track, counter, tracks
from chaos.verdict.shares import SUCCESS
from chaos.verdict.statistics import Floats
from chaos.verdict.view import View, among
from chaos.verdict.windows import Window

BREAKERS = "gateway_breaker_state"
_CACHES: tuple[tuple[str, dict[str, str], str, dict[str, str]], ...] = (
    ("gateway_cache_requests_total", {"result": "hit"}, "gateway_cache_requests_total", {"result": "miss"}),
    ("vllm:prefix_cache_hits_total", {}, "vllm:prefix_cache_queries_total", {}),
)
"""Hits, and what stands against them: misses, or all looks."""
_OPEN = 2.0
_SLICE_S = 1.0
_DUE_A_SLICE = 10
_CALM_BLOCK = 5
_CALM = 1.25
_COVERED = 2
_BUSIEST_S = 5


@dataclass(frozen=True)
class Stretch:
    """One number a slice. `calls` are those of the front door to engines, `hits` the share of looks at the cache that
    found something, `refusing` 1 while any breaker is open.
    """

    due: Floats
    served: Floats
    sends: Floats
    calls: Floats
    waiting: Floats
    hits: Floats
    refusing: Floats

    def __len__(self) -> int:
        """Slices."""
        return len(self.due)

    def last(self, slices: int) -> Stretch:
        """The end of it."""
        return Stretch(**{name: values[-slices:] for name, values in vars(self).items()})

    def share(self) -> Floats:
        """Served over due in each slice; NaN where nobody asked."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(self.due > 0, self.served / self.due, np.nan)


@dataclass(frozen=True)
class Course:
    """`before` is the baseline, `after` begins when the trigger was gone: the last revert, and where the load itself
    was raised, its return. `timeout_s` is what clients waited when they gave up, `busiest_per_s` the most that was
    served in five seconds of the run: capacity is no less. `backlog` is the line when the trigger was gone.
    """

    slice_s: float
    before: Stretch
    after: Stretch
    trigger_s: float
    timeout_s: float | None
    busiest_per_s: float
    backlog: float


def course_of(view: View, load: str | None = None) -> Course | str:
    """The course of the run, or what is missing to tell it."""
    times = view.times
    baseline, reverted, end = times.windows.get("baseline"), times.last_revert, times.load_end
    if baseline is None or reverted is None or end is None:
        return "the run has no baseline or no revert to count from"
    due = int((view.requests(load, baseline) & SUCCESS.counts(view.evidence.samples)).sum())
    if not due:
        return "nobody asked in the baseline"
    slice_s = max(_SLICE_S, math.ceil(_DUE_A_SLICE * baseline.length_s / due - 1e-9))
    cut = _Cut(view, load, slice_s)
    before = cut.stretch(baseline.start, baseline.end)
    whole = cut.stretch(reverted, end)
    skipped = _calm_from(before.due, whole.due)
    after = whole.last(len(whole) - skipped) if skipped else whole
    if len(before) < _CALM_BLOCK or len(after) < _CALM_BLOCK:
        return f"fewer than {_CALM_BLOCK} slices of {slice_s:g}s before the trigger or after it"
    backlog = float(after.waiting[0])
    return Course(
        slice_s=slice_s,
        before=before,
        after=after,
        trigger_s=reverted + skipped * slice_s - baseline.end,
        timeout_s=_timeout(view, load),
        busiest_per_s=cut.busiest(times.load_start or 0.0, end),
        backlog=backlog,
    )


def _calm_from(before: Floats, after: Floats) -> int:
    """The slice from which on the load is what it was: behind the last five in a row that are far above it."""
    usual = float(before.mean())
    high = usual * _CALM + 3 * math.sqrt(usual / _CALM_BLOCK)
    if len(after) < _CALM_BLOCK:
        return 0
    means = np.convolve(after, np.full(_CALM_BLOCK, 1 / _CALM_BLOCK), "valid")
    loud = np.flatnonzero(means > high)
    return int(loud[-1]) + _CALM_BLOCK if len(loud) else 0


def _timeout(view: View, load: str | None) -> float | None:
    """How long clients waited for attempts that they gave up; None when nobody did."""
    samples = view.evidence.samples
    rows = among(samples.outcome, frozenset({"abandoned"})) & ~np.isnan(samples.sent_s)
    rows &= np.ones(len(rows), dtype=np.bool_) if load is None else samples.load == load
    return float(np.median(samples.end_s[rows] - samples.sent_s[rows])) if rows.any() else None


class _Cut:
    """One run, to be cut into slices."""

    def __init__(self, view: View, load: str | None, slice_s: float) -> None:
        self._view, self._slice_s = view, slice_s
        samples, ever = view.evidence.samples, Window("ever", ((-math.inf, math.inf),))
        counted = view.requests(load, ever) & SUCCESS.counts(samples)
        self._due = np.sort(samples.intended_s[counted])
        self._served = np.sort(samples.intended_s[counted & SUCCESS.hits(samples)])
        self._sent = np.sort(samples.sent_s[view.attempts(load, ever) & (samples.attempt >= 1)])
        readings = view.evidence.readings
        self._calls = counter(readings, CALLS, {"dependency": "engine"})
        self._waiting = [t for name in WAITING for t in tracks(readings.select(name)) if t.moved()]
        self._breakers = tracks(readings.select(BREAKERS))

    def stretch(self, start: float, end: float) -> Stretch:
        """All series over the whole slices between two times."""
        slices = max(0, math.floor((end - start) / self._slice_s + 1e-9))
        edges: Floats = start + self._slice_s * np.arange(slices + 1, dtype=np.float64)
        return Stretch(
            due=_counts(self._due, edges),
            served=_counts(self._served, edges),
            sends=_counts(self._sent, edges),
            calls=_nan(edges) if self._calls is None else np.diff(self._calls.at(edges)),
            waiting=self._levels(self._waiting, edges, lambda values: values.sum(axis=0)),
            hits=self._hits(edges),
            refusing=self._levels(list(self._breakers), edges, lambda values: (values == _OPEN).any(axis=0) * 1.0),
        )

    def busiest(self, start: float, end: float) -> float:
        """The most requests served a second, over five seconds."""
        edges = np.arange(start, end, _SLICE_S)
        counts = _counts(self._served, edges)
        if len(counts) < _BUSIEST_S:
            return float(counts.mean()) if len(counts) else 0.0
        return float(np.convolve(counts, np.full(_BUSIEST_S, 1 / _BUSIEST_S), "valid").max())

    def _hits(self, edges: Floats) -> Floats:
        """The hit ratio of the first cache that was ever looked into."""
        readings = self._view.evidence.readings
        for hit_name, hit_labels, other_name, other_labels in _CACHES:
            hits, others = counter(readings, hit_name, hit_labels), counter(readings, other_name, other_labels)
            if hits is None or others is None or not (hits.moved or others.moved):
                continue
            found, rest = np.diff(hits.at(edges)), np.diff(others.at(edges))
            looks = found + rest if hit_name == other_name else rest
            with np.errstate(invalid="ignore", divide="ignore"):
                return np.where(looks > 0, found / looks, np.nan)
        return _nan(edges)

    def _levels(self, found: list[Track], edges: Floats, join: Callable[[Floats], Floats]) -> Floats:
        """Gauges as they stood at the end of each slice, joined; NaN where they were not read throughout."""
        if not found or max(float(t.t[0]) for t in found) > edges[0] + _COVERED * self._slice_s:
            return _nan(edges)
        values = np.array([t.value[np.maximum(0, np.searchsorted(t.t, edges[1:], side="right") - 1)] for t in found])
        stale = edges[1:] > min(float(t.t[-1]) for t in found) + _COVERED * self._slice_s
        return np.where(stale, np.nan, join(values))


def _counts(times: Floats, edges: Floats) -> Floats:
    return np.diff(np.searchsorted(times, edges)).astype(np.float64)


def _nan(edges: Floats) -> Floats:
    return np.full(len(edges) - 1, np.nan)
