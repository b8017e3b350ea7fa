"""The stack's own events in the journal: when they happened, and until when somebody listened."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from chaos.journal.evidence import Evidence
from chaos.journal.record import Record
from chaos.journal.tables import Floats

HEARTBEAT = "events_last"
MISSED = "events_missed"


def happened_at(record: Record) -> float:
    """The stack's own time of the event; the time of the record where the stack gave none."""
    at = record.fields.get("at")
    return record.t if at is None else float(at)


def polled_until(evidence: Evidence) -> float | None:
    """Until when it is certain that every event was heard; None when nobody listened.

    The probe writes a heartbeat with every answer and counts what a target forgot before it was asked. What comes
    after the first such hole, or after the last answer of the quietest target, may have been missed.
    """
    beats, holes = evidence.readings.select(HEARTBEAT), evidence.readings.select(MISSED)
    if not len(beats):
        return None
    last_answers = [float(beats.t[beats.target == target].max()) for target in beats.target.distinct]
    return min(last_answers + [float(t) for t in holes.t[holes.value > 0]])


def unheard(evidence: Evidence, start: float, end: float) -> str | None:
    """Why something may have happened between these times and was not told; None when everybody who ever tells was
    listened to all the while. A target that began to count anew may have died with events that nobody had fetched.
    """
    beats, holes = evidence.readings.select(HEARTBEAT), evidence.readings.select(MISSED)
    if not len(beats):
        return "nobody listened to the stack's events"
    for target in sorted(set(beats.target.tolist())):
        mine = beats.target == target
        why = _unheard(beats.t[mine], beats.value[mine], start, end)
        if why:
            return f"{target} {why}"
    lost = [float(t) for t in holes.t[holes.value > 0] if start <= t]
    return f"events were forgotten before they were asked for, at {min(lost):.1f}s" if lost else None


def _unheard(t: Floats, last: Floats, start: float, end: float) -> str | None:
    order = np.argsort(t, kind="stable")
    t, last = t[order], last[order]
    if t[0] > start:
        return f"was not listened to before {t[0]:.1f}s"
    if t[-1] < end:
        return f"was not listened to after {t[-1]:.1f}s"
    anew = t[1:][(np.diff(last) < 0) & (t[1:] >= start) & (t[:-1] < end)]
    return f"began to count its events anew at {anew[0]:.1f}s" if len(anew) else None


@dataclass(frozen=True)
class About:
    """Which events are meant: None means any."""

    dependency: str | None = None
    replica: str | None = None
    reason: str | None = None

    def matches(self, record: Record, name: str) -> bool:
        """Whether a record is an event of this name about them."""
        told = record.fields
        return (
            told.get("name") == name
            and self.dependency in (None, told.get("dependency"))
            and self.replica in (None, told.get("replica"))
            and self.reason in (None, told.get("reason"))
        )

    def words(self, name: str) -> str:
        """`breaker_opened (vector-store)`."""
        who = ", ".join(part for part in (self.dependency, self.replica, self.reason) if part)
        return f"{name} ({who})" if who else name

    def found(self, evidence: Evidence, name: str, when: Callable[[float], bool]) -> tuple[Record, ...]:
        """Events of this name about them at such times, in the order in which they happened."""
        told = (r for r in evidence.of_kind("event") if self.matches(r, name) and when(happened_at(r)))
        return tuple(sorted(told, key=happened_at))
