"""How much work a hop got, from two sources that know nothing of each other: counters and traces. Pure.

Counters are scraped twice a second, traces are every hop's own record of each call. Between the first and the last
scrape of a window both must tell the same, but for calls under way at these two moments, for the age of a scrape, and
for what a part that was restarted took with it. More than that is no sampling: one of them is wrong.
"""

from __future__ import annotations

from collections import Counter as Counted
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chaos.journal.evidence import Evidence
from chaos.journal.series import parse_series
from chaos.journal.spans import SpanTable
from chaos.journal.tables import Points
from chaos.verdict.counters import CALLS, Counter, counter, scrapes
from chaos.verdict.statistics import Floats
from chaos.verdict.windows import Window

Work = Literal["calls", "tokens"]

PROMPT, OUTPUT = "vllm:prompt_tokens_total", "vllm:generation_tokens_total"
TOKENS_TOLD = "gateway_tokens_total"
"""What a gateway was told of the tokens of its engines, where those have no counters of their own."""

_AGE = "scrape_duration_seconds"
_LEAST_AGE_S, _USUAL_AGE_S = 0.05, 0.25
"""A reading is stamped when it has arrived; what it tells may be as old as its scrape was long. Runs from before that
was written down are taken to have had the usual age.
"""

_TAKEN_ALONG_S = 2.0
"""How much of its last work may be missing from what a process that died has told: its counts of calls that never
ended are in the last scrape, their spans are not."""

_SLACK = 0.01
_EDGE_S = 1.0


@dataclass(frozen=True)
class Calls:
    """Amounts of work, in calls or tokens, each done between two moments."""

    start: Floats
    end: Floats
    amount: Floats

    def within(self, slices: Floats) -> Floats:
        """The amount that was done by its end in each slice, a row of (start, end) in order."""
        ordered = np.argsort(self.end, kind="stable")
        total = np.concatenate(([0.0], np.cumsum(self.amount[ordered])))
        edges = np.searchsorted(self.end[ordered], slices)
        return np.asarray(total[edges[:, 1]] - total[edges[:, 0]])

    def between(self, since: float, until: float, ages_s: tuple[float, float]) -> tuple[float, float]:
        """The least and the most that a counter may have grown by from one reading to another, each of some age."""
        sure = (self.start >= since) & (self.end <= until - ages_s[1])
        possible = (self.end >= since - ages_s[0]) & (self.start <= until)
        return float(self.amount[sure].sum()), float(self.amount[possible].sum())


NO_CALLS = Calls(np.empty(0), np.empty(0), np.empty(0))


@dataclass(frozen=True)
class Sources:
    """What both say of one hop, by the target that says it. None with a reason: that source says nothing."""

    counters: Mapping[str, Counter] | None
    traces: Mapping[str, Calls] | None
    why_no_counters: str = ""
    why_no_traces: str = ""
    broken: str = ""

    def counted(self, slices: Floats) -> Floats:
        """Work a slice by the counters."""
        edges = [each.at(slices[:, 1]) - each.at(slices[:, 0]) for each in (self.counters or {}).values()]
        return np.asarray(sum(edges, start=np.zeros(len(slices))))

    def traced(self, slices: Floats) -> Floats:
        """Work a slice by the traces."""
        return np.asarray(
            sum((each.within(slices) for each in (self.traces or {}).values()), start=np.zeros(len(slices)))
        )


def sources_of(dependency: str, work: Work, evidence: Evidence, windows: Iterable[Window]) -> Sources:
    """Both sources of the hop to a dependency, as far as the evidence has them over all these windows."""
    spans = [(window.start, window.end) for window in windows]
    since, until = min(start for start, _ in spans), max(end for _, end in spans)
    counters, why_no_counters = _counters(dependency, work, evidence, since, until)
    tellers = counters or _tellers(dependency, work, evidence)
    traces = _traces(dependency, work, evidence.spans, tellers)
    known = [name for name in tellers if len(evidence.readings.select("spans_last", None, name))]
    why_no_traces = "" if known else f"{' and '.join(tellers) or dependency} keeps no spans"
    return Sources(
        counters,
        traces if known else None,
        why_no_counters,
        why_no_traces,
        next((why for name in known if (why := _unread(evidence, name, until))), ""),
    )


def disagreement(sources: Sources, evidence: Evidence, window: Window) -> tuple[float, float] | None:
    """What counters and traces say of a window when that cannot both be true; None when it can."""
    said = least = most = traced = 0.0
    for target, each in (sources.counters or {}).items():
        calls = (sources.traces or {}).get(target, NO_CALLS)
        times = np.unique(scrapes(evidence.readings, each.parts[0].series, each.parts[0].target))
        ages = evidence.readings.select(_AGE, None, each.parts[0].target)
        for start, end in window.spans:
            inside = times[(times >= start) & (times <= end)]
            if len(inside) < 2:
                continue
            since, until = float(inside[0]), float(inside[-1])
            lost, unseen = _taken_along(each, since, until)
            low, high = calls.between(since, until, (_age_s(ages, since), _age_s(ages, until)))
            said += float(np.diff(each.at(inside[[0, -1]]))[0])
            least, most = least + low - lost, most + high + unseen
            traced += float(calls.within(np.array([[since, until]])).sum())
    slack = 1 + _SLACK * max(said, most)
    return None if least - slack <= said <= most + slack else (said, traced)


def heaviest(dependency: str, spans: SpanTable, window: Window, most: int = 3) -> tuple[str, ...]:
    """The traces that called the dependency most often in the window: `trace 4b1c… (9 calls)`."""
    rows = (spans.kind == "caller") & (spans.name == dependency) & window.holds(spans.start_s)
    traces = Counted(trace for trace in spans.where(rows).trace_id.to_pylist() if trace)
    return tuple(f"trace {trace} ({times} calls)" for trace, times in traces.most_common(most))


def _age_s(ages: Points, t: float) -> float:
    """How old the reading of this moment may be."""
    told = ages.value[ages.t == t]
    return max(_LEAST_AGE_S, float(told[0])) if len(told) else _USUAL_AGE_S


def _taken_along(grown: Counter, since: float, until: float) -> tuple[float, float]:
    """What restarts may have cost the counter, and what they may have cost the traces."""
    lost = 0.0
    for reset in {reset for part in grown.parts for reset in part.resets if since <= reset <= until}:
        before = grown.at(np.array([reset - _TAKEN_ALONG_S, reset]))
        lost += float(before[1] - before[0])
    return lost, lost


def _counters(
    dependency: str, work: Work, evidence: Evidence, since: float, until: float
) -> tuple[dict[str, Counter] | None, str]:
    """The counters by target, or why there are none that cover the time."""
    readings = evidence.readings
    asked = readings.select(CALLS, {"dependency": dependency})
    if not len(asked):
        return None, f"no series {CALLS}{{dependency={dependency}}}"
    if work == "calls":
        found = {
            str(target): counter(readings, CALLS, {"dependency": dependency}, str(target))
            for target in set(asked.target)
        }
        return _covering(found, f"{CALLS}{{dependency={dependency}}}", since, until)
    replicas = {parse_series(text)[1].get("replica", "") for text in set(asked.series.tolist())}
    own = {name: _both(counter(readings, PROMPT, {}, name), counter(readings, OUTPUT, {}, name)) for name in replicas}
    if any(own.values()):
        return _covering(own, f"{PROMPT} of {dependency}", since, until)
    told = {name: counter(readings, TOKENS_TOLD, {"replica": name}) for name in replicas}
    return _covering(told, f"{PROMPT} or {TOKENS_TOLD} of {dependency}", since, until)


def _both(first: Counter | None, second: Counter | None) -> Counter | None:
    return Counter((*first.parts, *second.parts)) if first and second else first or second


def _covering(
    found: Mapping[str, Counter | None], name: str, since: float, until: float
) -> tuple[dict[str, Counter] | None, str]:
    counters = {target: each for target, each in sorted(found.items()) if each is not None}
    if not counters:
        return None, f"no series {name}"
    if not any(each.moved for each in counters.values()):
        return None, f"{name} never moved during the run"
    if min(each.first for each in counters.values()) > since + _EDGE_S:
        return None, f"{name} was not read from the start of the baseline on"
    if max(each.last for each in counters.values()) < until - _EDGE_S:
        return None, f"{name} was not read to the end of the window"
    return counters, ""


def _tellers(dependency: str, work: Work, evidence: Evidence) -> tuple[str, ...]:
    """Who writes the spans of a hop that nobody counts."""
    spans = evidence.spans
    asked = (spans.kind == "caller") & (spans.name == dependency)
    return tuple(sorted(set((spans.service if work == "calls" else spans.peer)[asked].tolist())))


def _traces(dependency: str, work: Work, spans: SpanTable, tellers: Iterable[str]) -> dict[str, Calls]:
    asked = spans.where((spans.kind == "caller") & (spans.name == dependency))
    served = spans.where(spans.kind == "callee")
    of = _callers(served, asked)
    if work == "calls":
        # A library that sends again by itself has one span of its own for several calls that arrived.
        amount = np.maximum(1.0, np.bincount(of[of >= 0], minlength=len(asked)).astype(np.float64))
        return {name: _chosen(asked, asked.start_s, amount, asked.service == name) for name in tellers}
    # What arrived is told by who computed it, probes without a trace as well; of what did not, only the caller tells.
    alone = np.bincount(of[of >= 0], minlength=len(asked)) == 0
    computed, heard = _tokens(served), np.where(alone, _tokens(asked), 0.0)
    found = {}
    for name in tellers:
        there, sent = served.service == name, alone & (asked.peer == name)
        found[name] = Calls(
            np.concatenate((served.start_s[there], asked.start_s[sent])),
            np.concatenate((served.end_s[there], asked.end_s[sent])),
            np.concatenate((computed[there], heard[sent])),
        )
    return found


def _chosen(spans: SpanTable, end: Floats, amount: Floats, rows: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Calls:
    return Calls(spans.start_s[rows], end[rows], amount[rows])


def _callers(served: SpanTable, asked: SpanTable) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """For each served call the place of its caller's span, -1 where nobody wrote one down."""
    ids = asked.span_id.combine_chunks() if len(asked) else pa.array([], pa.string())
    places = pc.index_in(served.parent_id, value_set=ids)
    return np.asarray(pc.fill_null(places, -1).to_numpy(), dtype=np.int64)


def _tokens(spans: SpanTable) -> Floats:
    """Prompt and output together, what is unknown as nothing."""
    return (np.maximum(spans.prompt_tokens, 0) + np.maximum(spans.output_tokens, 0)).astype(np.float64)


def _unread(evidence: Evidence, service: str, until: float) -> str:
    """Why the spans of a target may lack some of the calls; empty when they were read to their end after the window."""
    missed = evidence.readings.select("spans_missed", None, service)
    if len(missed):
        return f"{missed.value.sum():.0f} spans of {service} were forgotten before they were read"
    unread = evidence.readings.select("spans_unread", None, service)
    if not ((unread.value == 0) & (unread.t >= until)).any():
        return f"the spans of {service} were not read to their end after the window"
    return ""
