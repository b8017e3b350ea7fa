"""What states the parts of a stack were in, and from when to when: one lane for each breaker, replica and shedder.

    vector-store breaker   closed ────── open ── half-open ── open ───── half-open ─ closed ─────

Events say it to the millisecond. Where a stack tells no events, a scraped gauge of the breakers says it to the second.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from chaos.journal.series import parse_series
from chaos.report.facts import Facts
from chaos.verdict.counters import tracks
from chaos.verdict.events import happened_at

Tone = Literal["calm", "warm", "hot"]
Key = tuple[str, str]

_STATES: Mapping[str, tuple[str, str, str]] = {
    "breaker_opened": ("breaker", "closed", "open"),
    "breaker_half_open": ("breaker", "open", "half-open"),
    "breaker_closed": ("breaker", "half-open", "closed"),
    "replica_ejected": ("rotation", "in", "ejected"),
    "replica_restored": ("rotation", "ejected", "in"),
    "shedding_started": ("shedding", "off", "on"),
    "shedding_stopped": ("shedding", "on", "off"),
    "recall_dropped": ("recall", "good", "low"),
    "recall_restored": ("recall", "low", "good"),
}
"""Event to (what it is about, the state before, the state after)."""

_GAUGE = "gateway_breaker_state"
_GAUGE_STATES = ("closed", "half-open", "open")
_MOST_STAYS = 200

TONES: Mapping[str, Tone] = {
    "closed": "calm", "in": "calm", "off": "calm", "good": "calm", "half-open": "warm",
    "open": "hot", "ejected": "hot", "on": "hot", "low": "hot",
}  # fmt: skip
"""How much a state is to be worried about."""


@dataclass(frozen=True)
class Stay:
    """A state from `begin` to `end`, seconds after the start of the load."""

    begin: float
    end: float
    state: str


@dataclass(frozen=True)
class Lane:
    """Who, and the states one after the other. A lane that changed too often is cut short, and `left_out` says so."""

    name: str
    stays: tuple[Stay, ...]
    left_out: int = 0


@dataclass
class _Drawing:
    """A lane while its changes come in."""

    first: str
    changes: list[tuple[float, str]] = field(default_factory=list)

    def lane(self, name: str, until: float) -> Lane:
        begins = [(0.0, self._at_the_start()), *((at, state) for at, state in self.changes if 0 < at < until)]
        ends = [*(at for at, _ in begins[1:]), until]
        stays = [Stay(at, end, state) for (at, state), end in zip(begins, ends, strict=True) if end > at]
        return Lane(name, tuple(stays[:_MOST_STAYS]), max(0, len(stays) - _MOST_STAYS))

    def _at_the_start(self) -> str:
        return next((state for at, state in reversed(self.changes) if at <= 0), self.first)


def lanes_of(facts: Facts) -> tuple[Lane, ...]:
    """A lane for everything that changed, by name."""
    if facts.times.load_start is None or facts.times.load_end is None:
        return ()
    until = facts.times.load_end - facts.zero
    drawn = _from_events(facts)
    told = {dependency for what, dependency in map(_about, drawn) if what == "breaker"}
    drawn |= {name: lane for name, lane in _from_gauge(facts).items() if lane.changes and _about(name)[1] not in told}
    return tuple(drawing.lane(name, until) for name, drawing in sorted(drawn.items()))


def closed_throughout(facts: Facts) -> tuple[str, ...]:
    """Dependencies whose breakers were read and never moved."""
    moved = {dependency for what, dependency in map(_about, _from_events(facts)) if what == "breaker"}
    gauge = _from_gauge(facts)
    moved |= {_about(name)[1] for name, lane in gauge.items() if lane.changes or lane.first != "closed"}
    return tuple(sorted({_about(name)[1] for name in gauge} - moved))


def _from_events(facts: Facts) -> dict[str, _Drawing]:
    drawn: dict[str, _Drawing] = {}
    for record in sorted(facts.evidence.of_kind("event"), key=happened_at):
        known = _STATES.get(str(record.fields.get("name")))
        if known:
            what, before, after = known
            drawing = drawn.setdefault(_name(what, record.fields), _Drawing(before))
            drawing.changes.append((happened_at(record) - facts.zero, after))
    return drawn


def _from_gauge(facts: Facts) -> dict[str, _Drawing]:
    drawn: dict[str, _Drawing] = {}
    for track in tracks(facts.evidence.readings.select(_GAUGE)):
        _, labels = parse_series(track.series)
        states = [_GAUGE_STATES[int(value)] if value in (0, 1, 2) else "closed" for value in track.value.tolist()]
        drawn[_name("breaker", labels)] = _Drawing(states[0], list(_changes(track.t.tolist(), states, facts.zero)))
    return drawn


def _changes(times: list[float], states: list[str], zero: float) -> Iterable[tuple[float, str]]:
    for t, before, after in zip(times[1:], states, states[1:], strict=False):
        if after != before:
            yield t - zero, after


def _name(what: str, about: Mapping[str, Any]) -> str:
    """`engine engine-a: breaker`; a replica of the dependency's own name says nothing more."""
    dependency, replica = str(about.get("dependency") or ""), str(about.get("replica") or "")
    who = " ".join(name for name in (dependency, replica if replica != dependency else "") if name)
    return f"{who}: {what}" if who else what


def _about(name: str) -> Key:
    """What a lane is about, and of which dependency."""
    who, _, what = name.rpartition(": ")
    return (what, who.split(" ")[0])
