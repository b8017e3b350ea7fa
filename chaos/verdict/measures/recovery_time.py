"""How long after the faults were gone did users go on suffering?

Time is cut into slices of one second from the last revert on; a request belongs to the slice in which it was due. A
slice is *back* when its level is no worse than the baseline's by more than the margin. Recovery time is the start of
the first row of three slices that are back, unless three slices in a row later are not: then the search begins again
behind that relapse. So neither one lucky second nor a short calm before the next collapse counts, a second in which
nobody asked is not back, and requests that were due before the revert are charged to the fault. A restless baseline
widens the margin only so far: a share that is 25 points worse is never back.

What is not back may be on its way: where the last half surely gets better it is SLOW, with the time it still needs,
else STUCK. A signal that users give cannot tell more: behind a long line everybody is late until the very end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from chaos.settings import setting
from chaos.spec.model import Unit
from chaos.units import Duration
from chaos.verdict.latency import e2e_s, ttft_s
from chaos.verdict.naming import journal_line, requests
from chaos.verdict.outcome import Estimate
from chaos.verdict.returning import back_since
from chaos.verdict.shares import SHED, SUCCESS, degraded_share
from chaos.verdict.signals import SLICE_S, Signal, share_signal, wait_signal
from chaos.verdict.statistics import Floats
from chaos.verdict.trends import drift
from chaos.verdict.view import View
from chaos.verdict.windows import Window

IN_A_ROW = 3
_FEWEST_BASELINE_SLICES = 5
_NOISE_QUANTILE = 0.95
_FEWEST_TREND = 8
_WAITS = ("ttft", "e2e")


@dataclass(frozen=True)
class RecoveryTime:
    """See `summary`."""

    name: ClassVar[str] = "recovery_time"
    summary: ClassVar[str] = "time from the last revert until the signal is as good as in the baseline, and stays so"
    unit: ClassVar[Unit] = "duration"
    needs_window: ClassVar[bool] = False

    of: Literal["success_ratio", "degraded_ratio", "shed_ratio", "ttft", "e2e"] = setting(
        "which signal has to come back; for ttft and e2e its p90 a second", default="success_ratio"
    )
    reason: str | None = setting("with degraded_ratio: only this reason", default=None)
    load: str | None = setting("only this load; default all", default=None)
    margin: Duration = setting(
        "with ttft and e2e: how much slower than in the baseline still counts as back",
        default=Duration(0),
    )

    def estimate(self, view: View) -> Estimate:
        """Seconds, known to one slice. Not back at the end of the load: at least as long as was watched."""
        signal, times = self._signal(), view.times
        baseline = times.windows.get("baseline")
        if baseline is None or times.last_revert is None or times.load_end is None:
            return Estimate(None, missing="the run has no baseline or no revert to count from")
        level = signal.level(view, self.load, baseline)
        slices = signal.slices(view, self.load, baseline.start, baseline.end)
        if level is None or np.isfinite(slices).sum() < _FEWEST_BASELINE_SLICES:
            return Estimate(None, missing=f"fewer than {_FEWEST_BASELINE_SLICES} seconds of baseline to compare with")
        if not signal.steady(level):
            return Estimate(None, missing=f"the baseline itself was no steady state ({self.of} {level:.3g})")
        asked = float(self.margin) if self.of in _WAITS else 0.0
        usual = min(noise(signal.worse_by(slices, level)), signal.widest(level))
        margin = max(signal.floor(level), usual, asked)
        worse = signal.worse_by(signal.slices(view, self.load, times.last_revert, times.load_end), level)
        found = from_slices(worse <= margin, worse - margin)
        return replace(found, records=self._rests_on(view, signal, worse <= margin, found))

    def _rests_on(self, view: View, signal: Signal, back: NDArray[np.bool_], found: Estimate) -> tuple[str, ...]:
        """The revert that it counts from, and the worst requests of the last second before the return."""
        reverts, start = view.evidence.of_kind("fault_reverted"), view.times.last_revert or 0.0
        records = tuple(journal_line(record) for record in reverts[-1:])
        suffering = np.flatnonzero(~back[: None if found.value is None else round(found.value / SLICE_S)])
        if not len(suffering):
            return records
        at, samples = start + SLICE_S * int(suffering[-1]), view.evidence.samples
        due, bad = view.requests(self.load, Window("last", ((at, at + SLICE_S),))), signal.bad(samples)
        return (*records, *requests(samples, due & (bad > 0), worst=bad))

    def _signal(self) -> Signal:
        return {
            "success_ratio": lambda: share_signal(SUCCESS, rising_is_good=True),
            "degraded_ratio": lambda: share_signal(degraded_share(self.reason), rising_is_good=False),
            "shed_ratio": lambda: share_signal(SHED, rising_is_good=False),
            "ttft": lambda: wait_signal(ttft_s),
            "e2e": lambda: wait_signal(e2e_s),
        }[self.of]()


def noise(worse_by: Floats) -> float:
    """How much worse than its own level an undisturbed second is at the 95th percentile."""
    finite = worse_by[np.isfinite(worse_by)]
    return max(0.0, float(np.quantile(finite, _NOISE_QUANTILE))) if len(finite) else 0.0


def from_slices(back: NDArray[np.bool_], short_of: Floats | None = None) -> Estimate:
    """Recovery time from one flag a slice; see the head of this module. `short_of`: how far each is from being back."""
    watched, found = len(back) * SLICE_S, back_since(back.tolist(), IN_A_ROW)
    if found is None:
        return _not_back(back, watched, short_of)
    value = found * SLICE_S
    finer = "the bound lies inside the one second that recovery is known to: another bound"
    return Estimate(
        value, (max(0.0, value - SLICE_S), value), len(back), detail=f"watched for {watched:.0f}s", to_settle=finer
    )


def _not_back(back: NDArray[np.bool_], watched: float, short_of: Floats | None) -> Estimate:
    """At least as long as was watched. Getting better (SLOW) or going nowhere (STUCK, as far as this signal shows)?"""
    good = next((i for i, is_back in enumerate(back[::-1].tolist()) if not is_back), len(back))
    at_least = (len(back) - good) * SLICE_S
    more = None if short_of is None else _more_s(short_of)
    if more is None:
        detail = f"STUCK: not back within {watched:.0f}s, and flat"
        longer = (
            "a longer recovery window: the load ended before the signal was back, `metastability` tells if it can be"
        )
    else:
        detail = f"SLOW: not back within {watched:.0f}s, getting better, about {more:.0f}s more at this pace"
        longer = f"a recovery window that is {math.ceil(more - 1e-6)}s longer"
    return Estimate(None, (at_least, math.inf), len(back), detail=detail, to_settle=longer)


def _more_s(short_of: Floats) -> float | None:
    """Seconds until the signal is back at the pace of the last half; None where it does not surely get better."""
    half = short_of[-max(_FEWEST_TREND, len(short_of) // 2) :]
    pace = drift(np.where(np.isfinite(half), half, np.nan), walks=False)
    if pace is None or not pace.falls:
        return None
    left = float(np.nanmean(half[-IN_A_ROW:])) / -pace.value * SLICE_S
    return max(SLICE_S, left) if math.isfinite(left) else None
