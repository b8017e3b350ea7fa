"""Where the windows of a run really lay, from the journal's own times instead of the plan's.

    gate │ baseline │ fault (one window per fault, `fault` is their union) │ recovery      │ settled
    0    load start  first inject                                last revert  + planned len   last arrival

A sample belongs to the window that holds its *intended* send time: a request that the stack kept waiting is charged
to the moment the user wanted it. The planned length of the load closes the last window, never the drain after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from chaos.journal.evidence import Evidence
from chaos.spec.model import Experiment

Span = tuple[float, float]


@dataclass(frozen=True)
class Window:
    """A named stretch of the run: one span, or several where faults left a pause. Seconds since the run began, end
    exclusive.
    """

    name: str
    spans: tuple[Span, ...]

    @property
    def start(self) -> float:
        """When the first span opens."""
        return self.spans[0][0]

    @property
    def end(self) -> float:
        """When the last span closes."""
        return self.spans[-1][1]

    @property
    def length_s(self) -> float:
        """Seconds inside the spans."""
        return sum(end - start for start, end in self.spans)

    def holds(self, times: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which of these times lie inside."""
        inside = np.zeros(len(times), dtype=np.bool_)
        for start, end in self.spans:
            inside |= (times >= start) & (times < end)
        return inside

    def after(self, grace_s: float) -> Window:
        """The same window without the first `grace_s` of every span; spans that end earlier vanish."""
        spans = tuple((start + grace_s, end) for start, end in self.spans if start + grace_s < end)
        return replace(self, spans=spans)


@dataclass(frozen=True)
class RunTimes:
    """All windows of one run and the instants that hypotheses refer to. `faults` maps a fault to (injected, reverted
    or None), `ending` to the moment from which on it may have been gone: when its revert began.
    """

    windows: Mapping[str, Window]
    load_start: float | None
    load_end: float | None
    faults: Mapping[str, tuple[float, float | None]]
    ending: Mapping[str, float]

    @property
    def last_revert(self) -> float | None:
        """When the last fault was reverted; None when none was injected or one never came back."""
        ends = [reverted for _, reverted in self.faults.values()]
        return None if not ends or None in ends else max(end for end in ends if end is not None)


def times_of(experiment: Experiment, evidence: Evidence, *, as_planned: bool = False) -> RunTimes:
    """Read the windows out of the evidence; one that never opened is absent. Never raises on an interrupted run.

    `as_planned`: the load lasts as long as it was meant to, even if it ended before or still goes on.
    """
    faults = _fault_times(evidence)
    ending = _endings(evidence)
    started = next(iter(evidence.of_kind("load_started")), None)
    if started is None:
        return RunTimes({}, None, None, faults, ending)
    start = float(started.fields.get("at", started.t))
    planned_end = start + _planned_length(experiment)
    load_end = planned_end if as_planned else min(planned_end, _stop_time(evidence))
    times = RunTimes({}, start, load_end, faults, ending)
    return replace(times, windows={w.name: w for w in _windows(experiment, times, start, load_end) if w.spans})


def _windows(experiment: Experiment, times: RunTimes, load_start: float, load_end: float) -> Iterable[Window]:
    injected = [begin for begin, _ in times.faults.values()]
    yield _window("gate", 0.0, load_start)
    yield _window("baseline", load_start, min(injected, default=load_end))
    spans = {name: (begin, load_end if end is None else end) for name, (begin, end) in times.faults.items()}
    for name, (begin, end) in spans.items():
        yield _window(name, begin, end)
    yield Window("fault", _union(spans.values()))
    if times.last_revert is not None:
        settled = min(times.last_revert + experiment.windows.recovery, load_end)
        yield _window("recovery", times.last_revert, settled)
        yield _window("settled", settled, load_end)


def _window(name: str, start: float, end: float) -> Window:
    return Window(name, ((start, end),) if end > start else ())


def _union(spans: Iterable[Span]) -> tuple[Span, ...]:
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        elif end > start:
            merged.append((start, end))
    return tuple(merged)


def _fault_times(evidence: Evidence) -> dict[str, tuple[float, float | None]]:
    """First inject and first revert of each fault: a second revert (watchdog, recover) changes nothing any more."""
    times: dict[str, tuple[float, float | None]] = {}
    for record in evidence.of_kind("fault_injected"):
        times.setdefault(str(record.fields["fault"]), (record.t, None))
    for fault, reverted in _reverts(evidence):
        begin, end = times.get(fault, (reverted, None))
        if end is None:
            times[fault] = (begin, reverted)
    return times


def _endings(evidence: Evidence) -> dict[str, float]:
    """When each revert began; in journals that do not tell, when the fault was last seen."""
    last_seen = {str(r.fields["fault"]): r.t for r in evidence.of_kind("fault_still") if r.fields.get("seen")}
    began = {
        str(r.fields["fault"]): r.t - float(r.fields["took_s"])
        for r in reversed(evidence.of_kind("fault_reverted"))
        if "took_s" in r.fields
    }
    return {**last_seen, **began}


def _reverts(evidence: Evidence) -> Iterable[tuple[str, float]]:
    """Reverts of the harness, then those that the watchdog did in its place."""
    for record in evidence.of_kind("fault_reverted"):
        yield str(record.fields["fault"]), record.t
    for line in evidence.watchdog:
        if line.get("step") == "revert" and line.get("ok") and "t" in line:
            yield str(line.get("fault")), float(line["t"])


def _planned_length(experiment: Experiment) -> float:
    windows = experiment.windows
    last_revert = max((f.at + f.for_ for f in experiment.faults), default=0.0)
    return float(windows.baseline + last_revert + windows.recovery + windows.settled)


def _stop_time(evidence: Evidence) -> float:
    """When the load can have ended at the latest: it was stopped, or the journal breaks off."""
    stops = [r.t for r in evidence.of_kind("stop_requested", "guard_tripped", "decided", "load_finished")]
    return min(stops, default=max((r.t for r in evidence.records), default=0.0))
