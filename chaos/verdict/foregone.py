"""Which hypotheses are refuted already, whatever is still to come; the same rule while a run goes on and after it.

Only what had ended by a moment is known at it. Every other planned request of a window is counted as the bound likes
best: Wilson's upper end rises with each success and its lower end falls with each miss; the low rank of a quantile
grows by at most one with each quick answer. So a claim that is broken even then stays broken, whatever becomes of them.

    share: interval of (hits + open, n + open) below `at_least`, or of (hits, n + open) above `at_most`
    wait:  fewer than the low rank of n + open are in time, `open` among them
    event: `within` has passed, and everybody who tells was asked again after it
    count: more leaks, or more events, than `at_most` already

Anything else can still change its answer and is never said to be refuted before its time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from chaos.journal.evidence import Evidence
from chaos.journal.record import Record
from chaos.journal.tables import Floats, ReadingTable
from chaos.spec.model import Hypothesis, Measure
from chaos.verdict.events import HEARTBEAT, MISSED, About, happened_at
from chaos.verdict.latency import e2e_s, share_of, ttft_s
from chaos.verdict.measures.absent import Absent
from chaos.verdict.measures.cross_talk import CrossTalk
from chaos.verdict.measures.degraded_ratio import DegradedRatio
from chaos.verdict.measures.e2e import E2e
from chaos.verdict.measures.event import Event, anchor_of
from chaos.verdict.measures.event_count import EventCount
from chaos.verdict.measures.itl import Itl
from chaos.verdict.measures.recall import Recall
from chaos.verdict.measures.shed_latency import ShedLatency
from chaos.verdict.measures.shed_ratio import ShedRatio
from chaos.verdict.measures.stream_integrity import StreamIntegrity
from chaos.verdict.measures.success_ratio import SuccessRatio
from chaos.verdict.measures.ttft import Ttft
from chaos.verdict.shares import INTEGRITY, RECALL, SHED, SUCCESS, Share, degraded_share
from chaos.verdict.statistics import interval_ranks, wilson
from chaos.verdict.view import Bound, View, decided
from chaos.verdict.windows import RunTimes, Window


@dataclass(frozen=True)
class Known:
    """A run as it stood at `now_s`: `evidence` holds what had ended by then, `due` when each planned request of each
    load is due, those of the future too.
    """

    evidence: Evidence
    due: Mapping[str, Floats]
    now_s: float

    @classmethod
    def at(cls, evidence: Evidence, decided: Record) -> Self:
        """What was known when the record was written, of a run that is over: every planned request has a final row.

        The record tells how many rows of samples there were. Their times would not do: an attempt that ended before,
        and whose client was about to try again, became the last of its request only because the load was ended.
        """
        samples, readings, finals = evidence.samples, evidence.readings, evidence.samples.finals
        told = readings.t <= decided.t
        return cls(
            replace(
                evidence,
                records=tuple(record for record in evidence.records if record.n <= decided.n),
                samples=samples.where(np.arange(len(samples)) < int(decided.fields.get("samples", 0))),
                readings=ReadingTable(
                    readings.t[told], readings.value[told], readings.target[told], readings.series[told]
                ),
            ),
            {name: finals.intended_s[finals.load == name] for name in finals.load.distinct},
            decided.t,
        )

    def open(self, window: Window, load: str | None) -> int:
        """Planned requests of a window whose end nobody knows yet."""
        due = [times for name, times in self.due.items() if load in (None, name)]
        ended = View(self.evidence, _NO_TIMES, window).requests(load)
        return sum(int(window.holds(times).sum()) for times in due) - int(ended.sum())


_NO_TIMES = RunTimes({}, None, None, {}, {})


def refuted_for_certain(hypothesis: Hypothesis, bound: Bound, known: Known, times: RunTimes) -> bool:
    """Whether the run, carried out to its end, refutes it whatever happens from now on. `times` are those of the whole
    run, and no fault may be left to inject or to revert: until then nobody knows where the windows lie.
    """
    measure = hypothesis.measure
    if hypothesis.compares:
        return False
    if isinstance(measure, Event):
        return _never_came(measure, known, times)
    window = times.windows.get(hypothesis.window or "")
    if window is None:
        return False
    felt = window.after(hypothesis.grace)
    view = View(known.evidence, times, felt, bound)
    if isinstance(measure, Absent | EventCount):
        return _too_many(_told(measure, known.evidence, felt), bound)
    if isinstance(measure, CrossTalk):
        return _too_many(_leaks(measure, view), bound)
    load = getattr(measure, "load", None)
    open_ = known.open(felt, load)
    if isinstance(measure, Ttft | E2e):
        return _too_slow(measure, view, open_)
    share = _share_of(measure)
    return share is not None and _too_bad(share, view, load, open_)


def answered(hypothesis: Hypothesis, known: Known, times: RunTimes) -> bool:
    """Whether its answer is that of the whole run already: it looks at nothing but requests of windows that are over,
    and each of these has ended. `times` as in `refuted_for_certain`.
    """
    if not isinstance(hypothesis.measure, OF_REQUESTS):
        return False
    names = [name for name in (hypothesis.window, hypothesis.against) if name is not None]
    windows = [window for name in names if (window := times.windows.get(name))]
    load = None if hypothesis.compares else getattr(hypothesis.measure, "load", None)
    return len(windows) == len(names) and all(
        window.end <= known.now_s and not known.open(window, load) for window in windows
    )


OF_REQUESTS = (
    SuccessRatio, DegradedRatio, ShedRatio, Recall, StreamIntegrity, Ttft, E2e, Itl, ShedLatency, CrossTalk,
)  # fmt: skip
"""Measures that look at nothing but the requests of their window."""


def _share_of(measure: Measure) -> Share | None:
    """What it counts, of a measure that is a share."""
    if isinstance(measure, DegradedRatio):
        return degraded_share(measure.reason)
    shares: dict[type[Any], Share] = {
        SuccessRatio: SUCCESS, ShedRatio: SHED, Recall: RECALL, StreamIntegrity: INTEGRITY,
    }  # fmt: skip
    return shares.get(type(measure))


def _too_bad(share: Share, view: View, load: str | None, open_: int) -> bool:
    samples, bound = view.evidence.samples, view.bound
    counted = view.requests(load) & share.counts(samples)
    hits, n = int((counted & share.hits(samples)).sum()), int(counted.sum()) + open_
    if not n:
        return False
    too_low = bound.at_least is not None and wilson(hits + open_, n)[1] < bound.at_least
    return too_low or (bound.at_most is not None and wilson(hits, n)[0] > bound.at_most)


def _too_slow(measure: Ttft | E2e, view: View, open_: int) -> bool:
    samples, most = view.evidence.samples, view.bound.at_most
    if most is None:
        return False
    waits = (ttft_s if isinstance(measure, Ttft) else e2e_s)(samples)
    rows = view.requests(measure.load) & decided(samples)
    n = int(rows.sum()) + open_
    low, _ = interval_ranks(n, share_of(measure.quantile), n) if n else (None, None)
    return low is not None and int((waits[rows] <= most).sum()) + open_ < low


def _too_many(count: int, bound: Bound) -> bool:
    return bound.at_most is not None and count > bound.at_most


def _leaks(measure: CrossTalk, view: View) -> int:
    samples = view.evidence.samples
    return int((view.attempts(measure.load) & samples.leaked.known & (samples.leaked != "")).sum())


def _told(measure: Absent | EventCount, evidence: Evidence, window: Window) -> int:
    name = measure.absent if isinstance(measure, Absent) else measure.event_count
    about = About(measure.dependency, measure.replica, measure.reason)
    return len(about.found(evidence, name, lambda t: any(start <= t < end for start, end in window.spans)))


def _never_came(measure: Event, known: Known, times: RunTimes) -> bool:
    anchor, heard = anchor_of(measure.of, times), _heard_until(known.evidence)
    if anchor is None or heard is None or heard - anchor[1] <= measure.within:
        return False
    since, zero = anchor
    about = About(measure.dependency, measure.replica, measure.reason)
    found = about.found(known.evidence, measure.event, lambda t: t >= since)
    return all(happened_at(record) - zero > measure.within for record in found)


def _heard_until(evidence: Evidence) -> float | None:
    """Until when no event can turn up any more. An answer is written down a little after it was given: all that had
    happened by then is known only with the next one. So it is not the last of a target that counts, but the one before.
    """
    beats, holes = evidence.readings.select(HEARTBEAT), evidence.readings.select(MISSED)
    answers = [np.sort(beats.t[beats.target == target]) for target in beats.target.distinct]
    if not answers or min(map(len, answers)) < 2:
        return None
    return min([float(times[-2]) for times in answers] + [float(t) for t in holes.t[holes.value > 0]])
