"""A window held against a control: the same measure over other time of the same run, or over another load beside it.

    load:  ... baseline ...│... outage ...     `against: baseline`      blocks of each, drawn apart
    chat:  ─────────────────────────────
    plain: ─────────────────────────────       `against_load: plain`    the same blocks of both, drawn together

Loads that run at the same time meet the same stalls, so what both had in common drops out of a paired difference; two
windows of one run never share a second. Waits and lengths are compared as a factor, shares as points: how many of a
hundred users came off worse.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from chaos.journal.tables import SampleTable
from chaos.verdict.blocks import (
    FEWEST_SLICES,
    Draws,
    block_length,
    draw,
    interval,
    quantiles,
    share_difference,
)
from chaos.verdict.naming import requests
from chaos.verdict.outcome import Estimate
from chaos.verdict.statistics import Floats, Integers, quantile, student
from chaos.verdict.view import Control, Mask, View
from chaos.verdict.wording import say

_SLICE_S = 1.0
_MOST_SLICES = 400
_TAIL = 0.05
_SEED = 20261130
_FEWEST_BEYOND = 5
"""Values beyond a quantile: with fewer it rests on single requests, and drawing them again teaches nothing."""

Numbers = tuple[Mask, Floats]
"""Which rows count, and the number of each that does."""


@dataclass(frozen=True)
class _Arm:
    """One side: the number of each request, and its slice of time."""

    numbers: Floats
    slice_of: Integers
    slices: int

    def sums(self) -> Floats:
        """The sum of the numbers and their count in each slice."""
        sums = np.bincount(self.slice_of, self.numbers, self.slices)
        return np.column_stack((sums, np.bincount(self.slice_of, minlength=self.slices)))

    @property
    def mean(self) -> float:
        """Over all requests."""
        return float(self.numbers.mean())


@dataclass(frozen=True)
class _Pair:
    """The window and its control, with the draws of each; the same draws where they share their time."""

    window: _Arm
    control: _Arm
    slice_s: float
    draws: tuple[Draws, Draws]

    @property
    def paired(self) -> bool:
        return self.draws[0] is self.draws[1]

    @property
    def blocks(self) -> float:
        return sum(each.blocks for each in self.draws) / 2

    @property
    def freedom(self) -> float:
        """Degrees of freedom: a block less than there are, in each arm that has blocks of its own."""
        return sum(each.blocks - 1 for each in (self.draws[:1] if self.paired else self.draws))

    @property
    def said(self) -> str:
        """How it was compared: `blocks of 8s`, `the same blocks of 4s of both`."""
        lengths = [say(each.length * self.slice_s, "duration") for each in self.draws]
        if self.paired:
            return f"the same blocks of {lengths[0]} of both"
        return f"blocks of {lengths[0]}" if lengths[0] == lengths[1] else f"blocks of {lengths[0]} and {lengths[1]}"

    def enough_time(self) -> bool:
        """Whether there is anything to draw from."""
        return min(self.window.slices, self.control.slices) >= FEWEST_SLICES


def compare_waits(numbers: Numbers, view: View, control: Control, load: str | None, q: float) -> Estimate:
    """The quantile of the window as a multiple of the control's. Infinite waits are values like any other."""
    counts, waits = numbers
    longest = 10 * float(waits[np.isfinite(waits)].max(initial=1.0))
    pair = _pair(numbers, view, control, load, lambda values: np.log(np.clip(values, 1e-6, longest)))
    needed = math.ceil(_FEWEST_BEYOND / (1 - q) - 1e-9)
    missing = _missing(pair, control, needed)
    if missing:
        return Estimate(None, missing=missing)
    now, before = (quantile(arm.numbers, q) for arm in (pair.window, pair.control))
    with np.errstate(invalid="ignore", divide="ignore"):
        over, under = (
            quantiles(a.numbers, a.slice_of, d, q) for a, d in zip((pair.window, pair.control), pair.draws, strict=True)
        )
        replicas, ratio = over / under, float(np.divide(now, before))
    pairs = f"{say(now, 'duration')} against {say(before, 'duration')} in {control.said}"
    detail = f"{pairs}, {_sizes(pair)}; {pair.said}"
    found = _estimate(None if math.isnan(ratio) else ratio, interval(replicas, pair.freedom, pair.blocks), pair, detail)
    slowest = requests(view.evidence.samples, counts & view.requests(load), worst=waits)
    return replace(found, records=slowest)


def compare_means(
    numbers: Numbers, view: View, control: Control, load: str | None, *, noun: str, fewest: int
) -> Estimate:
    """The mean of the window as a multiple of the control's."""
    pair = _pair(numbers, view, control, load, lambda values: values)
    missing = _missing(pair, control, fewest)
    if missing or not pair.control.mean:
        return Estimate(None, missing=missing or f"nothing but empty ones in {control.said}")
    over, under = (d.sums(a.sums()) for a, d in zip((pair.window, pair.control), pair.draws, strict=True))
    with np.errstate(invalid="ignore", divide="ignore"):
        replicas = (over[:, 0] / over[:, 1]) / (under[:, 0] / under[:, 1])
    detail = f"{pair.window.mean:.1f} {noun}, {pair.control.mean:.1f} in {control.said}, {_sizes(pair)}; {pair.said}"
    value = pair.window.mean / pair.control.mean
    return _estimate(value, interval(replicas, pair.freedom, pair.blocks), pair, detail)


def compare_shares(hits: Numbers, view: View, control: Control, load: str | None, *, wanted: bool) -> Estimate:
    """By how many points users came off worse than in the control; below zero is better. `wanted`: hits are good."""
    pair = _pair(hits, view, control, load, lambda values: values)
    missing = _missing(pair, control, FEWEST_SLICES)
    if missing:
        return Estimate(None, missing=missing)
    arms = (pair.window, pair.control)
    sums = [d.sums(a.sums()) for a, d in zip(arms, pair.draws, strict=True)]
    with np.errstate(invalid="ignore", divide="ignore"):
        replicas = [each[:, 0] / each[:, 1] for each in sums]
    sizes = [_effective(a, r, d) for a, r, d in zip(arms, replicas, pair.draws, strict=True)]
    z, shares = student(_TAIL, pair.freedom), (pair.window.mean, pair.control.mean)
    together = _correlation(*replicas) if pair.paired else 0.0
    low, high = share_difference(shares, (sizes[0], sizes[1]), z, together)
    worse = shares[1] - shares[0] if wanted else shares[0] - shares[1]
    pairs = f"{say(shares[0], 'ratio')} against {say(shares[1], 'ratio')} in {control.said}"
    found = _estimate(worse, (-high, -low) if wanted else (low, high), pair, f"{pairs}, {_sizes(pair)}; {pair.said}")
    samples, (counts, values) = view.evidence.samples, hits
    return replace(found, records=requests(samples, counts & view.requests(load) & (values != wanted)))


def _pair(numbers: Numbers, view: View, control: Control, load: str | None, level: Callable[[Floats], Floats]) -> _Pair:
    """Both arms on slices of one length; `level` makes of values what is even enough for an autocorrelation."""
    samples = view.evidence.samples
    counts, values = numbers
    rows = counts & view.requests(load), counts & view.requests(control.load or load, control.window)
    dice = np.random.default_rng(_SEED)
    slice_s = _slice_s(samples, rows)
    at = np.floor(samples.intended_s / slice_s).astype(np.int64)
    if control.window is None:
        known = np.unique(at[rows[0] | rows[1]])
        window, beside = (_arm(values, at, each, known) for each in rows)
        length = block_length(_levels(window, level) - _levels(beside, level)) if len(known) else 1
        both = draw(dice, max(1, len(known)), length)
        return _Pair(window, beside, slice_s, (both, both))
    arms = [_arm(values, at, each, np.unique(at[each])) for each in rows]
    drawn = [draw(dice, a.slices, block_length(_levels(a, level))) if a.slices else draw(dice, 1, 1) for a in arms]
    return _Pair(arms[0], arms[1], slice_s, (drawn[0], drawn[1]))


def _slice_s(samples: SampleTable, rows: tuple[Mask, Mask]) -> float:
    """One second, or more where that would be thousands of slices."""
    spans = [float(np.ptp(samples.intended_s[each])) if each.any() else 0.0 for each in rows]
    return max(_SLICE_S, math.ceil(max(spans) / _MOST_SLICES))


def _arm(values: Floats, at: Integers, rows: Mask, known: Integers) -> _Arm:
    """The counted rows on the slices that have any: nothing can be told about a second in which nobody asked."""
    return _Arm(values[rows], np.searchsorted(known, at[rows]), len(known))


def _levels(arm: _Arm, level: Callable[[Floats], Floats]) -> Floats:
    """The mean level of each slice; a slice that only the other arm has gets the mean of all."""
    evened = level(arm.numbers)
    counts = np.bincount(arm.slice_of, minlength=arm.slices)
    sums = np.bincount(arm.slice_of, evened, arm.slices)
    usual = float(evened.mean()) if len(evened) else 0.0
    return np.where(counts > 0, sums / np.maximum(counts, 1), usual)


def _missing(pair: _Pair, control: Control, needed: int) -> str | None:
    """Why the two cannot be compared."""
    for arm, where in ((pair.window, "in this window"), (pair.control, f"in {control.said}")):
        if len(arm.numbers) < needed:
            return f"only {len(arm.numbers)} requests {where}; a comparison takes {needed}"
    if not pair.enough_time():
        return f"only {min(pair.window.slices, pair.control.slices)} slices of time with requests in one of the two"
    return None


def _effective(arm: _Arm, replicas: Floats, draws: Draws) -> float:
    """How many independent requests would make a share as uncertain as its blocks make it; never more than it has."""
    independent = arm.mean * (1 - arm.mean) / len(arm.numbers)
    spread = float(np.nanvar(replicas)) * draws.blocks / (draws.blocks - 1) if draws.blocks > 1 else 0.0
    return len(arm.numbers) * (min(1.0, independent / spread) if spread > 0 and independent > 0 else 1.0)


def _correlation(a: Floats, b: Floats) -> float:
    known = np.isfinite(a) & np.isfinite(b)
    if known.sum() < FEWEST_SLICES or not a[known].std() or not b[known].std():
        return 0.0
    return float(np.corrcoef(a[known], b[known])[0, 1])


def _sizes(pair: _Pair) -> str:
    return f"{len(pair.window.numbers)} and {len(pair.control.numbers)} requests"


def _estimate(value: float | None, found: tuple[float, float], pair: _Pair, detail: str) -> Estimate:
    settle = "longer windows, or a bound farther away: the interval is as wide as the noise of this run"
    return Estimate(value, found, len(pair.window.numbers), detail=detail, to_settle=settle)
