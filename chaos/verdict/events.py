"""The stack's own events in the journal: when they happened, and until when somebody listened."""

from __future__ import annotations

from chaos.journal.evidence import Evidence
from chaos.journal.record import Record

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
    last_answers = [float(beats.t[beats.target == target].max()) for target in set(beats.target.tolist())]
    return min(last_answers + [float(t) for t in holes.t[holes.value > 0]])
