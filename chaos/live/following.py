"""A run that goes on, heard record by record, as metric families and as annotations: a state machine without effects.

    gate ─► baseline ─► fault (each by its name, too) ─► recovery ─► settled ─► none
     run_started  load_started   fault_injected   last fault_reverted   + planned length   load_finished

It keeps counts and never the requests themselves, so it is as small at the end of a run as at its beginning.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from chaos.journal.live import LiveWindow
from chaos.journal.record import OUTCOMES, Sample
from chaos.openmetrics import TTFT_BOUNDS_S, Family, Point, Spread
from chaos.plan.plan import Plan
from chaos.report.events import Story
from chaos.spec.model import Guard
from chaos.verdict.live import guard_name, live_value

MOST_MOMENTS = 500
WINDOWS = ("gate", "baseline", "fault", "recovery", "settled")

Fields = Mapping[str, Any]
Annotation = dict[str, Any]


@dataclass
class _Harm:
    """One fault as far as it has come; times in seconds since the run began."""

    kind: str
    targets: tuple[str, ...]
    injected_at: float | None = None
    seen: bool = False
    what: str = ""
    reverted_at: float | None = None

    @property
    def in_force(self) -> bool:
        """Whether it harms now."""
        return self.injected_at is not None and self.reverted_at is None


@dataclass
class Followed:
    """One run. Feed it with `tell`; ask it at any time."""

    plan: Plan
    header: Fields = field(default_factory=dict)
    _load_start_s: float | None = None
    _load_ended: bool = False
    _ended: bool = False
    _harms: dict[str, _Harm] = field(init=False)
    _planned: dict[str, int] = field(default_factory=dict)
    _requests: Counter[tuple[str, str]] = field(default_factory=Counter)
    _waits: dict[str, list[int]] = field(default_factory=dict)
    _waited_s: dict[str, float] = field(default_factory=dict)
    _recent: LiveWindow = field(init=False)
    _tripped: set[str] = field(default_factory=set)
    _story: Story = field(default_factory=Story)
    _moments: deque[tuple[float, str, str]] = field(default_factory=lambda: deque(maxlen=MOST_MOMENTS))

    def __post_init__(self) -> None:
        """All that the plan knows beforehand, so that every series is there from the beginning."""
        self._harms = {f.name: _Harm(f.fault.kind, tuple(t.name for t in f.targets)) for f in self.plan.faults}
        self._recent = LiveWindow(max((float(guard.over) for guard in self.plan.experiment.guards), default=1.0))

    def tell(self, kind: str, fields: Fields) -> None:
        """One journal record, or one sample as ("sample", {"sample": ...})."""
        if kind == "sample":
            self._take(fields["sample"])
            return
        t = float(fields["t"])
        if kind == "run_started":
            self.header = fields
        elif kind == "load_started":
            self._load_start_s = float(fields["at"])
            self._planned = {load["name"]: int(load["planned"]) for load in fields["loads"]}
        elif kind == "guard_tripped":
            self._tripped.add(str(fields["guard"]))
        elif kind in ("load_finished", "run_finished"):
            self._load_ended = True
            self._ended = kind == "run_finished"
        elif fields.get("fault") in self._harms:
            self._harm(self._harms[fields["fault"]], kind, t, fields)
        self._remember(t, kind, fields)

    def _harm(self, harm: _Harm, kind: str, t: float, fields: Fields) -> None:
        if kind == "fault_injected":
            harm.injected_at = t
        elif kind == "fault_confirmed":
            harm.seen, harm.what = bool(fields.get("seen")), str(fields.get("what", ""))
        elif kind == "fault_reverted":
            harm.reverted_at = t

    def _take(self, sample: Sample) -> None:
        if not sample.final:
            return
        self._recent.feed(sample)
        self._requests[sample.load, sample.outcome] += 1
        wait_s = math.inf if sample.first_token_s is None else sample.first_token_s - sample.intended_s
        counts = self._waits.setdefault(sample.load, [0] * (len(TTFT_BOUNDS_S) + 1))
        counts[bisect_left(TTFT_BOUNDS_S, wait_s)] += 1
        self._waited_s[sample.load] = self._waited_s.get(sample.load, 0.0) + (wait_s if math.isfinite(wait_s) else 0.0)

    def _remember(self, t: float, kind: str, fields: Fields) -> None:
        """What the stack and the run tell becomes a point; faults have a stretch of their own."""
        for moment in self._story.hear(t, kind, fields):
            if moment.tone in ("stack", "run"):
                at = t if moment.at is None or self._load_start_s is None else self._load_start_s + moment.at
                self._moments.append((at, moment.tone, moment.text))

    def windows(self, now_s: float) -> frozenset[str]:
        """The windows that are open at this moment of the run."""
        if self._load_ended or not self.header:
            return frozenset()
        if self._load_start_s is None or now_s < self._load_start_s:
            return frozenset({"gate"})
        if standing := {name for name, harm in self._harms.items() if harm.in_force}:
            return frozenset({"fault", *standing})
        reverted = [harm.reverted_at for harm in self._harms.values() if harm.reverted_at is not None]
        if not reverted:
            return frozenset({"baseline"})
        if len(reverted) < len(self._harms):
            return frozenset()
        back = now_s < max(reverted) + self.plan.experiment.windows.recovery
        return frozenset({"recovery" if back else "settled"})

    def families(self, now_s: float) -> tuple[Family, ...]:
        """Everything as Prometheus reads it, at this moment of the run."""
        open_now = self.windows(now_s)
        names = dict.fromkeys((*WINDOWS, *self._harms))
        return (
            Family("brownout_run_info", "gauge", "Which run this is; always 1.", self._info()),
            Family("brownout_run_running", "gauge", "1 until the run is over.", self._running()),
            Family(
                "brownout_fault_in_force",
                "gauge",
                "1 from the inject of a fault to its revert.",
                self._of_faults(lambda harm: harm.in_force),
            ),
            Family(
                "brownout_fault_confirmed",
                "gauge",
                "1 once somebody else than the fault itself has seen it.",
                self._of_faults(lambda harm: harm.seen),
            ),
            Family(
                "brownout_window",
                "gauge",
                "1 while a window is open; a fault has one of its own name.",
                tuple(Point({"window": name}, float(name in open_now)) for name in names),
            ),
            *self._of_requests(),
            *self._of_guards(now_s),
        )

    def _info(self) -> tuple[Point, ...]:
        keys = ("experiment", "run", "seed", "profile")
        return (Point({key: str(self.header[key]) for key in keys}, 1.0),) if self.header else ()

    def _running(self) -> tuple[Point, ...]:
        return (Point({}, float(not self._ended)),) if self.header else ()

    def _of_faults(self, holds: Callable[[_Harm], bool]) -> tuple[Point, ...]:
        return tuple(
            Point({"fault": name, "kind": harm.kind, "target": target}, float(holds(harm)))
            for name, harm in self._harms.items()
            for target in harm.targets or ("",)
        )

    def _of_requests(self) -> Iterator[Family]:
        planned = tuple(Point({"load": load}, float(count)) for load, count in self._planned.items())
        yield Family("brownout_requests_planned", "gauge", "Requests that are planned for the whole run.", planned)
        ended = tuple(
            Point({"load": load, "outcome": outcome}, float(self._requests[load, outcome]))
            for load in self._planned
            for outcome in OUTCOMES
        )
        yield Family("brownout_requests", "counter", "Requests that have ended, by how they ended.", ended)
        waits = tuple(
            Spread({"load": load}, TTFT_BOUNDS_S, tuple(counts), self._waited_s[load])
            for load, counts in self._waits.items()
        )
        told = "From intended send to first token of requests that have ended; one that never came counts in +Inf."
        yield Family("brownout_ttft_seconds", "histogram", told, waits, "seconds")

    def _of_guards(self, now_s: float) -> Iterator[Family]:
        named = self._guards()
        values = tuple(
            Point({"guard": name}, value)
            for name, guard in named.items()
            if (value := live_value(guard.measure, self._recent.recent(now_s, float(guard.over)))) is not None
        )
        yield Family("brownout_guard_value", "gauge", "What a guard sees; absent while too few requests ended.", values)
        limits = tuple(
            Point({"guard": name, "side": side}, float(limit))
            for name, guard in named.items()
            for side, limit in (("below", guard.below), ("above", guard.above))
            if limit is not None
        )
        yield Family("brownout_guard_limit", "gauge", "A guard trips below or above this.", limits)
        tripped = tuple(
            Point({"guard": name}, float(guard_name(guard) in self._tripped)) for name, guard in named.items()
        )
        yield Family("brownout_guard_tripped", "gauge", "1 once a guard has stopped the run.", tripped)

    def _guards(self) -> dict[str, Guard]:
        """Guards by name; a second one of the same measure and length gets a number, as a series must be one."""
        named: dict[str, Guard] = {}
        for guard in self.plan.experiment.guards:
            name = guard_name(guard)
            named[name if name not in named else f"{name} #{len(named) + 1}"] = guard
        return named

    def annotations(self, now_s: float) -> Iterator[Annotation]:
        """What a dashboard draws: a stretch for each fault, a point for what the stack and the run told."""
        for name, harm in self._harms.items():
            if harm.injected_at is not None:
                ends = now_s if harm.reverted_at is None else harm.reverted_at
                yield self._annotation(harm.injected_at, ends, name, _told(harm), ("fault", harm.kind, *harm.targets))
        for at, tone, text in self._moments:
            yield self._annotation(at, at, text.partition(":")[0], text, (tone,))

    def _annotation(self, start: float, end: float, title: str, text: str, tags: tuple[str, ...]) -> Annotation:
        wall = float(self.header.get("wall", 0.0)) - float(self.header.get("t", 0.0))
        return {
            "time": round((wall + start) * 1000),
            "timeEnd": round((wall + end) * 1000),
            "title": title,
            "text": text,
            "tags": ",".join(("brownout", *tags)),
            "run": str(self.header.get("run", "")),
        }


def _told(harm: _Harm) -> str:
    doubt = "confirmed" if harm.seen else "not confirmed so far"
    on = ", ".join(harm.targets) or "nothing"
    return f"{harm.kind} on {on}, {doubt}" + (f": {harm.what}" if harm.what else "")
