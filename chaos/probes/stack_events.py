"""What the stack itself tells: breakers that open, replicas that are ejected, with the stack's own times.

The one probe with a memory: it asks only for events after the last it saw. Events from before its first look belong to
someone else's run, and a target that began to count anew (it was restarted) is read again from its start.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from chaos.inventory import Target
from chaos.ports import Host
from chaos.probes.numbered import Entry, ask_after
from chaos.probes.probe import Reading


@dataclass
class _Cursor:
    since: float
    after: int = 0


@dataclass
class StackEvents:
    """Polls `events?after=N`. Make a new one for each run."""

    kind: ClassVar[str] = "stack_events"
    summary: ClassVar[str] = "collects the events that a target reports (breakers, ejections, shedding)"
    period_s: ClassVar[float] = 0.5
    _cursors: dict[str, _Cursor] = field(default_factory=dict)

    def applies_to(self, target: Target) -> bool:
        """Targets with an events URL."""
        return target.events is not None

    async def read(self, target: Target, host: Host) -> Reading:
        """New events (each with `name` and `mono`), `events_last` and, when the target forgot some, `events_missed`."""
        cursor = self._cursors.setdefault(target.name, _Cursor(since=host.clock.now()))
        try:
            events, last = await _ask(target, host, cursor.after)
            if last < cursor.after:
                cursor.after = 0
                events, last = await _ask(target, host, 0)
        except ValueError as error:
            return Reading(self.kind, target.name, error=str(error))
        values = {"events_last": float(last)}
        if events and cursor.after and (missed := events[0]["seq"] - cursor.after - 1) > 0:
            values["events_missed"] = float(missed)
        cursor.after = last
        fresh = tuple(event for event in events if event["mono"] >= cursor.since)
        return Reading(self.kind, target.name, values=values, events=fresh)


async def _ask(target: Target, host: Host, after: int) -> tuple[list[Entry], int]:
    """Events after a number, in order, and the number of the last one. Raises ValueError."""
    return await ask_after(after, str(target.events), host, who="the events URL", entries_of=_events_of)


def _events_of(told: Any) -> list[Entry]:
    return [
        {**event, "seq": int(event["seq"]), "mono": float(event["mono"]), "name": str(event["name"])}
        for event in told["events"]
    ]
