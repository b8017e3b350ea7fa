"""Do retries pile onto a dependency that is already in trouble?

Work that the dependency gets for each planned user request in the window, divided by the same in the baseline. 1 means
no pile-on, 3 that every user now costs three times the work. User requests are the planned ones, so a stack cannot hide
a storm by refusing users. Work is calls, or tokens: a retry of a long prompt weighs more than one of a short one.

Two sources tell it, counters and traces. Where both are there they must agree: a hop whose counter misses its resends
proves nothing, and neither do traces that were lost.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from chaos.settings import setting
from chaos.spec.model import Unit
from chaos.verdict.hops import Calls, Sources, Work, disagreement, heaviest, sources_of
from chaos.verdict.outcome import Estimate
from chaos.verdict.statistics import Floats, bootstrap_ratio
from chaos.verdict.view import View
from chaos.verdict.windows import Window

Source = Literal["available", "counters", "traces", "both"]
Counting = Callable[[Floats], Floats]
"""Work a slice."""

_SLICE_S = 1.0
_FEWEST_BASELINE_CALLS = 20
_FEWEST_SLICES = 3
_LONGER = "a longer fault or a higher rate: more calls to compare"
_EVER = Window("ever", ((-math.inf, math.inf),))


@dataclass(frozen=True)
class RetryAmplification:
    """See `summary`."""

    name: ClassVar[str] = "retry_amplification"
    summary: ClassVar[str] = "work a dependency gets per planned user request, relative to the baseline"
    unit: ClassVar[Unit] = "factor"
    needs_window: ClassVar[bool] = True

    dependency: str = setting("dependency whose calls count; `gateway` counts what clients send to the front door")
    load: str | None = setting("with `gateway`: only this load; default all", default=None)
    work: Work = setting("calls, or tokens: prompts and answers that engines computed", default="calls")
    source: Source = setting("who must tell; available: both where the stack keeps both", default="available")

    def estimate(self, view: View) -> Estimate:
        """Ratio of ratios with a block-bootstrap interval over seconds; with both sources one that holds both."""
        baseline, window = view.times.windows.get("baseline"), view.window
        if baseline is None or window is None:
            return Estimate(None, missing="the run has no baseline to compare with")
        now, then = _cut(window), _cut(baseline)
        if min(len(now), len(then)) < _FEWEST_SLICES:
            return Estimate(None, missing=f"the window or the baseline is shorter than {_FEWEST_SLICES}s")
        if self.dependency == "gateway":
            return self._from_clients(view, then, now)
        sources = sources_of(self.dependency, self.work, view.evidence, (baseline, window))
        lacking = self._lacking(sources) or self._contradiction(sources, view, (baseline, window))
        if lacking:
            return Estimate(None, missing=lacking)
        users = self._users(view, then), self._users(view, now)
        told = [self._ratio((of(then), of(now)), users) for of in self._asked(sources)]
        records = heaviest(self.dependency, view.evidence.spans, window)
        return replace(_together(told, self._note(sources)), records=records)

    def _asked(self, sources: Sources) -> list[Counting]:
        """The sources that count, counters first: what they say is the value."""
        found: list[Counting] = []
        if sources.counters is not None and self.source != "traces":
            found.append(sources.counted)
        if sources.traces is not None and self.source != "counters":
            found.append(sources.traced)
        return found

    def _lacking(self, sources: Sources) -> str | None:
        """Why what was asked for is not there."""
        wanted = {"available": (), "both": ("counters", "traces")}.get(self.source, (self.source,))
        if sources.counters is None and ("counters" in wanted or sources.traces is None):
            return sources.why_no_counters
        if sources.traces is None and "traces" in wanted:
            return sources.why_no_traces
        return sources.broken or None if sources.traces is not None and self.source != "counters" else None

    def _contradiction(self, sources: Sources, view: View, windows: tuple[Window, ...]) -> str | None:
        if len(self._asked(sources)) < 2:
            return None
        for window in windows:
            said = disagreement(sources, view.evidence, window)
            if said:
                return f"in `{window.name}` counters say {said[0]:.0f} {self.work}, traces say {said[1]:.0f}"
        return None

    def _note(self, sources: Sources) -> str:
        """Who told alone though both were welcome."""
        if self.source != "available" or (sources.counters is not None and sources.traces is not None):
            return ""
        return " (counters only)" if sources.traces is None else " (traces only)"

    def _from_clients(self, view: View, then: Floats, now: Floats) -> Estimate:
        """What clients send they know themselves: their records are one for each call."""
        if self.work == "tokens" or self.source in ("counters", "both"):
            return Estimate(None, missing="what clients send is told in calls, by the clients' own records alone")
        samples = view.evidence.samples
        sent = samples.intended_s[view.attempts(self.load, _EVER) & (samples.attempt >= 1)]
        calls = Calls(sent, sent, np.ones(len(sent)))
        users = self._users(view, then), self._users(view, now)
        return self._ratio((calls.within(then), calls.within(now)), users)

    def _ratio(self, amounts: tuple[Floats, Floats], users: tuple[Floats, Floats]) -> Estimate:
        (before, during), (users_before, users_during) = amounts, users
        if not users_during.sum():
            return Estimate(None, missing="no user request was due in this window")
        if before.sum() < _FEWEST_BASELINE_CALLS:
            few = f"only {before.sum():.0f} {self.work} to {self.dependency} in the baseline"
            return Estimate(None, missing=f"{few}, wanted {_FEWEST_BASELINE_CALLS} at least")
        value = (during.sum() / users_during.sum()) / (before.sum() / users_before.sum())
        interval = bootstrap_ratio((during, users_during), (before, users_before))
        detail = f"{during.sum():.0f} {self.work} for {users_during.sum():.0f} user requests"
        return Estimate(float(value), interval, int(users_during.sum()), detail=detail, to_settle=_LONGER)

    def _users(self, view: View, slices: Floats) -> Floats:
        load = self.load if self.dependency == "gateway" else None
        due = view.evidence.samples.intended_s[view.requests(load, _EVER)]
        return Calls(due, due, np.ones(len(due))).within(slices)


def _together(told: list[Estimate], note: str) -> Estimate:
    """One answer of all that count: the value of the first, in an interval that holds them all."""
    lacking = next((each for each in told if each.missing), None)
    if lacking:
        return lacking
    intervals = [each.interval for each in told if each.interval]
    interval = (min(low for low, _ in intervals), max(high for _, high in intervals))
    traced = f" by counters, {told[1].value:.2f} by traces" if len(told) > 1 else ""
    return replace(told[0], interval=interval, detail=told[0].detail + traced + note)


def _cut(window: Window) -> Floats:
    """Whole seconds of a window as rows of (start, end)."""
    starts = [start + i * _SLICE_S for start, end in window.spans for i in range(int((end - start) / _SLICE_S + 1e-9))]
    return np.array([(start, start + _SLICE_S) for start in starts], dtype=np.float64).reshape(-1, 2)
