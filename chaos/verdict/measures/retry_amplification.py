"""Do retries pile onto a dependency that is already in trouble?

Calls that the dependency gets for each planned user request in the window, divided by the same in the baseline. 1
means no pile-on, 3 that every user now costs three times the calls. User requests are the planned ones, so a stack
cannot hide a storm by refusing users.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from chaos.settings import setting
from chaos.spec.model import Unit
from chaos.verdict.counters import Counter, counter
from chaos.verdict.outcome import Estimate
from chaos.verdict.statistics import Floats, bootstrap_ratio
from chaos.verdict.view import View
from chaos.verdict.windows import Window

CALLS = "gateway_upstream_calls_total"

_SLICE_S = 1.0
_FEWEST_BASELINE_CALLS = 20
_FEWEST_SLICES = 3


@dataclass(frozen=True)
class RetryAmplification:
    """See `summary`."""

    name: ClassVar[str] = "retry_amplification"
    summary: ClassVar[str] = "calls a dependency gets per planned user request, relative to the baseline"
    unit: ClassVar[Unit] = "factor"
    needs_window: ClassVar[bool] = True

    dependency: str = setting("dependency whose calls count; `gateway` counts what clients send to the front door")
    load: str | None = setting("with `gateway`: only this load; default all", default=None)

    def estimate(self, view: View) -> Estimate:
        """Ratio of ratios with a block-bootstrap interval over seconds."""
        baseline, window = view.times.windows.get("baseline"), view.window
        if baseline is None or window is None:
            return Estimate(None, missing="the run has no baseline to compare with")
        now, then = _cut(window), _cut(baseline)
        if min(len(now), len(then)) < _FEWEST_SLICES:
            return Estimate(None, missing=f"the window or the baseline is shorter than {_FEWEST_SLICES}s")
        calls, why = self._calls(view, then, now)
        if calls is None:
            return Estimate(None, missing=why)
        before, during = calls
        users_before, users_during = self._users(view, then), self._users(view, now)
        if before.sum() < _FEWEST_BASELINE_CALLS or not users_during.sum():
            return Estimate(None, missing=f"only {before.sum():.0f} calls to {self.dependency} in the baseline")
        value = (during.sum() / users_during.sum()) / (before.sum() / users_before.sum())
        interval = bootstrap_ratio((during, users_during), (before, users_before))
        detail = f"{during.sum():.0f} calls for {users_during.sum():.0f} user requests"
        longer = "a longer fault or a higher rate: more calls to compare"
        return Estimate(float(value), interval, int(users_during.sum()), detail=detail, to_settle=longer)

    def _calls(self, view: View, then: Floats, now: Floats) -> tuple[tuple[Floats, Floats] | None, str]:
        """Calls a slice in baseline and window, or why they are not known."""
        samples = view.evidence.samples
        if self.dependency == "gateway":
            sent = samples.intended_s[view.attempts(self.load, _EVER) & (samples.attempt >= 1)]
            return (_count(sent, then), _count(sent, now)), ""
        calls = counter(view.evidence.readings, CALLS, {"dependency": self.dependency})
        if calls is None:
            return None, f"no series {CALLS}{{dependency={self.dependency}}}"
        if not calls.moved:
            return None, f"{CALLS}{{dependency={self.dependency}}} never moved during the run"
        if calls.first > then[0, 0] + _SLICE_S or calls.last < now[-1, 1] - _SLICE_S:
            return None, f"{CALLS} was not read from the start of the baseline to the end of the window"
        return (_growth(calls, then), _growth(calls, now)), ""

    def _users(self, view: View, slices: Floats) -> Floats:
        load = self.load if self.dependency == "gateway" else None
        return _count(view.evidence.samples.intended_s[view.requests(load, _EVER)], slices)


_EVER = Window("ever", ((-math.inf, math.inf),))


def _cut(window: Window) -> Floats:
    """Whole seconds of a window as rows of (start, end)."""
    starts = [start + i * _SLICE_S for start, end in window.spans for i in range(int((end - start) / _SLICE_S + 1e-9))]
    return np.array([(start, start + _SLICE_S) for start in starts], dtype=np.float64).reshape(-1, 2)


def _count(times: Floats, slices: Floats) -> Floats:
    ordered = np.sort(times)
    edges = np.searchsorted(ordered, slices)
    return (edges[:, 1] - edges[:, 0]).astype(np.float64)


def _growth(calls: Counter, slices: Floats) -> Floats:
    return calls.at(slices[:, 1]) - calls.at(slices[:, 0])
