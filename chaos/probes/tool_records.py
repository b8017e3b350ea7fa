"""What the tool service wrote down: every side effect (its ledger) and every call (its audit), read to the end.

Each becomes an event of the journal, `side_effect` or `tool_call`, with the trace of the request that caused it and
without its arguments. Like stack_events it remembers what it has read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from chaos.inventory import Target
from chaos.ports import Host
from chaos.probes.numbered import Entry, ask_after
from chaos.probes.probe import Reading

_PAGES = {"ledger": "side_effect", "audit": "tool_call"}
_LOOK_BACK_S, _LOOK_BACK = 5.0, 500
_FAR = 2**53
_KEPT = ("agent", "tool", "key", "trace_id", "outcome", "permitted", "mono")


@dataclass
class ToolRecords:
    """Polls `/ledger?after=N` and `/audit?after=N`. Make a new one for each run."""

    kind: ClassVar[str] = "tool_records"
    summary: ClassVar[str] = "collects the side effects and the audited calls of a tool service"
    period_s: ClassVar[float] = 0.5
    _after: dict[tuple[str, str], int] = field(default_factory=dict)

    def applies_to(self, target: Target) -> bool:
        """Tool services."""
        return target.role == "tool" and target.wire == "http"

    async def read(self, target: Target, host: Host) -> Reading:
        """What is new, and for each page `<page>_unread`: 0 says that it was read to its end."""
        values: dict[str, float] = {}
        events: list[Mapping[str, Any]] = []
        try:
            for page, name in _PAGES.items():
                entries, unread = await self._news(page, target, host)
                values[f"{page}_unread"] = float(unread)
                events += [
                    {"name": name, **{key: entry.get(key) for key in _KEPT if key in entry}} for entry in entries
                ]
        except ValueError as error:
            return Reading(self.kind, target.name, values=values, events=tuple(events), error=str(error))
        return Reading(self.kind, target.name, values=values, events=tuple(events))

    async def _news(self, page: str, target: Target, host: Host) -> tuple[list[Mapping[str, Any]], int]:
        """New entries of a page, and how many are left."""
        place = (target.name, page)
        if place not in self._after:
            return await self._first_look(place, target, host)
        entries, last = await _ask(target, page, self._after[place], host)
        if last < self._after[place]:  # it began to count anew
            entries, last = await _ask(target, page, 0, host)
        self._after[place] = entries[-1]["seq"] if entries else last
        return entries, last - self._after[place]

    async def _first_look(
        self, place: tuple[str, str], target: Target, host: Host
    ) -> tuple[list[Mapping[str, Any]], int]:
        """The load may be a moment older than the first look, so a little of what was before is told too."""
        since, page = host.clock.now() - _LOOK_BACK_S, place[1]
        _, last = await _ask(target, page, _FAR, host)
        entries, last = await _ask(target, page, max(0, last - _LOOK_BACK), host)
        self._after[place] = entries[-1]["seq"] if entries else last
        return [entry for entry in entries if entry["mono"] >= since], last - self._after[place]


async def _ask(target: Target, page: str, after: int, host: Host) -> tuple[list[Entry], int]:
    """Entries after a number, in order, and the number of the last there is. Raises ValueError."""
    url = f"http://{target.address}/{page}"
    return await ask_after(after, url, host, who=f"/{page}", entries_of=_entries_of)


def _entries_of(told: Any) -> list[Entry]:
    return [{**entry, "seq": int(entry["seq"]), "mono": float(entry["mono"])} for entry in told["entries"]]
