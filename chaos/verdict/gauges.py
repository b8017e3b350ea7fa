"""Series over a window boiled down to one exact number: readings are no sample, so the interval is the value.

`settled` is special: what is left behind can only be seen when every request has ended, so gauges of that window are
read up to the end of the run, after the drain.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

import numpy as np

from chaos.verdict.counters import Counter, Track
from chaos.verdict.outcome import Estimate
from chaos.verdict.statistics import Floats
from chaos.verdict.view import View
from chaos.verdict.windows import Window

Reduce = Literal["last", "max", "min", "mean", "rate", "delta"]

_NAMED = 3
_COVERED_S = 1.0
"""How far a counter's readings may end from the edge of a window: one scrape or two."""


def exact(value: float, n: int, detail: str = "") -> Estimate:
    """A number without doubt."""
    return Estimate(value, (value, value), n, detail=detail, to_settle="nothing but another bound: the value is exact")


def growth_over(grown: Counter, window: Window, *, per_second: bool) -> Estimate:
    """How much a counter grew inside the window; survives restarts of the target."""
    if grown.first > window.start + _COVERED_S or grown.last < window.end - _COVERED_S:
        return Estimate(None, missing="the series was not read during the whole window")
    edges = grown.at(np.array(window.spans, dtype=np.float64).reshape(-1))
    growth = float((edges[1::2] - edges[0::2]).sum())
    told = exact(growth / window.length_s if per_second else growth, len(grown.parts))
    return replace(told, records=tuple(_series(part, window.start, window.end) for part in grown.parts[:_NAMED]))


def gauge_over(found: tuple[Track, ...], view: View, window: Window, reduce: Reduce) -> Estimate:
    """Boil gauges down; a target that was ever read must have been read in the window too, or it may hide anything."""
    since, until = _reach(view, window, reduce)
    inside = [(track.target, track.value[(track.t >= since) & (track.t < until)]) for track in found]
    read = [(target, values) for target, values in inside if len(values)]
    silent = sorted({target for target, _ in inside} - {target for target, _ in read})
    if silent:
        when = "after its last request had ended" if reduce == "last" and window.name == "settled" else "in this window"
        return Estimate(None, missing=f"{', '.join(silent)} was not read {when}")
    told = exact(_boil([values for _, values in read], reduce), sum(len(values) for _, values in read))
    return replace(told, records=tuple(_series(track, since, until) for track in found[:_NAMED]))


def _series(track: Track, since: float, until: float) -> str:
    """`gateway gateway_queue_depth, 12 readings from 16.0s to 31.0s, the last 3`."""
    inside = (track.t >= since) & (track.t <= until)
    if not inside.any():
        return f"{track.target} {track.series}, not read here"
    t, last = track.t[inside], float(track.value[inside][-1])
    return f"{track.target} {track.series}, {len(t)} readings from {t[0]:.1f}s to {t[-1]:.1f}s, the last {last:.6g}"


def _reach(view: View, window: Window, reduce: Reduce) -> tuple[float, float]:
    """First and last time (exclusive) of the readings that count."""
    if reduce != "last" or window.name != "settled":
        return window.start, window.end
    ends = view.evidence.samples.end_s
    drained = float(np.nanmax(ends)) if len(ends) else window.start
    return max(window.start, drained), math.inf


def _boil(series: list[Floats], reduce: Reduce) -> float:
    if reduce == "max":
        return max(float(values.max()) for values in series)
    if reduce == "min":
        return min(float(values.min()) for values in series)
    if reduce == "mean":
        return sum(float(values.mean()) for values in series)
    return sum(float(values[-1]) for values in series)
