"""What a measure may look at, and which requests count for what.

A measure gets one `View` and returns one `Estimate`; it never sees the plan, the runner or the clock. The sets of
outcomes below are the only place that says what success is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from chaos.journal.evidence import Evidence
from chaos.journal.tables import SampleTable
from chaos.journal.texts import Texts
from chaos.verdict.windows import RunTimes, Window

SERVED = frozenset({"good", "degraded"})
"""Outcomes that are a success for the user."""

ANSWERED = SERVED | {"late"}
"""Outcomes with a whole answer, however slow."""

UNDECIDED = "indeterminate"
"""The client itself does not know; counts neither for nor against the stack."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Bound:
    """The claim that an estimate is held against, in the unit of its measure (ratios 0 to 1, seconds, numbers)."""

    at_least: float | None = None
    at_most: float | None = None


@dataclass(frozen=True)
class Control:
    """What a window is held against: another window, or with None the same one; another load, or with None the same.
    `said` names it.
    """

    window: Window | None
    load: str | None
    said: str


@dataclass(frozen=True)
class View:
    """Evidence seen through one window. `window` is None for measures that span the whole run; with a `control` the
    estimate is a difference, a factor or points.
    """

    evidence: Evidence
    times: RunTimes
    window: Window | None = None
    bound: Bound = Bound()
    control: Control | None = None

    def requests(self, load: str | None = None, window: Window | None = None) -> Mask:
        """Final rows, one per request, that were due in the window (the view's own unless another is given)."""
        return self.attempts(load, window) & self.evidence.samples.final

    def attempts(self, load: str | None = None, window: Window | None = None) -> Mask:
        """All rows, resends included, of requests that were due in the window."""
        samples, within = self.evidence.samples, window or self.window
        rows = np.ones(len(samples.final), dtype=np.bool_) if within is None else within.holds(samples.intended_s)
        return rows if load is None else rows & (samples.load == load)


def among(outcomes: Texts, wanted: frozenset[str]) -> Mask:
    """Which rows have one of these outcomes."""
    return outcomes.isin(wanted)


def decided(samples: SampleTable) -> Mask:
    """Rows whose outcome is known."""
    return samples.outcome != UNDECIDED


def marked(degraded: Texts, reason: str | None) -> Mask:
    """Rows whose `x-degraded` names the reason, or anything at all when `reason` is None."""
    return among(degraded, frozenset(text for text in degraded.values if says(text, reason)))


def says(degraded: str, reason: str | None) -> bool:
    """Whether one value of `x-degraded` names the reason, or anything at all when `reason` is None."""
    return bool(degraded) if reason is None else reason in (part.strip() for part in degraded.split(","))


def first_attempts(samples: SampleTable) -> Mask:
    """Rows of first sends: what tells how punctual the load was. (A request that was never sent has attempt 0.)"""
    return np.asarray(samples.attempt == 1)
