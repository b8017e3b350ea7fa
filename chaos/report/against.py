"""Which requests speak against a hypothesis: what a reader wants to see first who does not believe a number.

For a share these are the rows that count and are no hit; for a wait those beyond the bound. A measure that counts no
requests (an event, a series) is answered with those who fared worst while it was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from chaos.journal.tables import Bools, Floats, Integers, SampleTable
from chaos.report.facts import Facts
from chaos.spec.model import Hypothesis
from chaos.verdict.judge import bound_of
from chaos.verdict.latency import e2e_s, ttft_s
from chaos.verdict.outcome import Judged
from chaos.verdict.shares import INTEGRITY, RECALL, SHED, SUCCESS, Share, degraded_share
from chaos.verdict.view import View, among, decided
from chaos.verdict.windows import Window

MOST = 200
_WORST_OF_OTHERS = 20

_SHARES: Mapping[str, Callable[[Any], Share]] = {
    "success_ratio": lambda _: SUCCESS,
    "degraded_ratio": lambda measure: degraded_share(measure.reason),
    "shed_ratio": lambda _: SHED,
    "recall": lambda _: RECALL,
    "stream_integrity": lambda _: INTEGRITY,
}
_WAITS: Mapping[str, Callable[[SampleTable], Floats]] = {
    "ttft": ttft_s,
    "e2e": e2e_s,
    "shed_latency": lambda s: np.where(among(s.outcome, frozenset({"shed"})), s.end_s - s.intended_s, np.nan),
    "load_lateness": lambda s: s.sent_s - s.intended_s,
}
_MISFORTUNE: Mapping[str, float] = {
    "abandoned": 6,
    "failed": 5,
    "shed": 4,
    "late": 3,
    "indeterminate": 2,
    "degraded": 1,
}


@dataclass(frozen=True)
class Against:
    """Rows of the sample table, the worst first, at most MOST; `total` of `counted` speak against the claim.

    `direct` is False where the measure counts no requests and the rows are those that fared worst.
    """

    rows: Integers
    total: int
    counted: int
    direct: bool

    @property
    def told(self) -> str:
        """One sentence."""
        shown = len(self.rows)
        if not self.direct:
            worst = f"the {shown} that fared worst meanwhile" if shown > 1 else "the one that fared worst meanwhile"
            return f"Not measured on single requests: {worst}." if shown else "Every request meanwhile was good."
        if not self.total:
            return f"None of {self.counted} requests speaks against it" + (": the worst." if shown else ".")
        cut = f"; the worst {shown} of them" if shown < self.total else ""
        return f"{self.total} of {self.counted} requests speak against it{cut}."


def against(facts: Facts, hypothesis: Hypothesis, judged: Judged) -> Against:
    """Those that speak against it, in the window in which it was measured."""
    samples, measure = facts.evidence.samples, hypothesis.measure
    view = View(facts.evidence, facts.times, _window(facts, hypothesis))
    due = view.requests(getattr(measure, "load", None))
    if measure.name in _SHARES and judged.unit == "ratio":
        share = _SHARES[measure.name](measure)
        counted = due & share.counts(samples)
        hits = share.hits(samples)
        return _worst(samples, counted, counted & (hits if bound_of(hypothesis).at_least is None else ~hits))
    if measure.name in _WAITS:
        waits = _WAITS[measure.name](samples)
        counted = due & decided(samples) & ~np.isnan(waits)
        return _slowest(counted, counted & _beyond(hypothesis, judged, waits), waits)
    if measure.name == "cross_talk":
        return _worst(samples, due, due & samples.leaked.known & (samples.leaked != ""))
    hurt = by_misfortune(samples, due & among(samples.outcome, frozenset(_MISFORTUNE)))
    return Against(hurt[:_WORST_OF_OTHERS], 0, int(due.sum()), direct=False)


def by_misfortune(samples: SampleTable, mask: Bools) -> Integers:
    """These rows, those first that fared worst: by their outcome, then by their wait for the first token."""
    rows = np.flatnonzero(mask)
    weights = np.array([_MISFORTUNE.get(outcome, 0) for outcome in samples.outcome[rows].tolist()], dtype=np.float64)
    waits = samples.first_token_s[rows] - samples.intended_s[rows]
    return rows[np.lexsort((-np.where(np.isnan(waits), np.inf, waits), -weights))]


def _worst(samples: SampleTable, counted: Bools, against_it: Bools) -> Against:
    return Against(by_misfortune(samples, against_it)[:MOST], int(against_it.sum()), int(counted.sum()), direct=True)


def _slowest(counted: Bools, beyond: Bools, waits: Floats) -> Against:
    """The slowest of those beyond the bound; where there are none, a few of the slowest that count."""
    total = int(beyond.sum())
    rows = np.flatnonzero(beyond if total else counted)
    slowest = rows[np.argsort(-waits[rows], kind="stable")]
    return Against(slowest[: MOST if total else _WORST_OF_OTHERS], total, int(counted.sum()), direct=True)


def _beyond(hypothesis: Hypothesis, judged: Judged, waits: Floats) -> Bools:
    """Waits beyond the bound; a bound that is no duration (a factor against another window) says nothing of one
    request.
    """
    bound = bound_of(hypothesis)
    if judged.unit != "duration" or (bound.at_most is None and bound.at_least is None):
        return np.zeros(len(waits), dtype=np.bool_)
    most = np.inf if bound.at_most is None else bound.at_most
    least = -np.inf if bound.at_least is None else bound.at_least
    return np.asarray((waits > most) | (waits < least))


def _window(facts: Facts, hypothesis: Hypothesis) -> Window | None:
    """Its own, without the grace; for a measure over the whole run what lies from the first fault on."""
    windows, times = facts.times.windows, facts.times
    if hypothesis.window is not None and hypothesis.window in windows:
        return windows[hypothesis.window].after(hypothesis.grace)
    if hypothesis.measure.name == "recovery_time" and times.last_revert is not None and times.load_end is not None:
        return Window("after the faults", ((times.last_revert, max(times.last_revert, times.load_end)),))
    return windows.get("fault")
