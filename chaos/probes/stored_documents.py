"""What a vector store holds of the documents that users added during the run, listed whole at every look.

Only a whole list can show that something is gone that was there. What came and what went since the last look become
events of the journal, `document_stored` and `document_gone`, with the marker that the document carries (the beginning
of the trace id of the request that brought it); `uploads_listed` counts the list, and says that it was read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, ClassVar

from chaos.inventory import Target
from chaos.ports import Host, PostgresRefused
from chaos.probes.probe import Reading

_LOOK_BACK_S = 5.0
_CLOCK = "SELECT extract(epoch FROM clock_timestamp())"
_NO_SUCH_TABLE = "42P01"
"""SQLSTATE `undefined_table` (PostgreSQL, appendix A): a store that takes no documents from users."""
_MARKER = re.compile(r"\bm-[0-9a-f]{12}\b")


@dataclass
class _Shelf:
    since: float
    held: dict[str, str] = field(default_factory=dict)


@dataclass
class StoredDocuments:
    """Lists the table `uploads` (id, body, at). Make a new one for each run: it remembers what it saw."""

    kind: ClassVar[str] = "stored_documents"
    summary: ClassVar[str] = "lists the documents that users added to a vector store: what came, what is gone"
    period_s: ClassVar[float] = 1.0
    _shelves: dict[str, _Shelf] = field(default_factory=dict)

    def applies_to(self, target: Target) -> bool:
        """Vector stores that speak PostgreSQL's protocol."""
        return target.role == "vector-store" and target.wire == "postgres"

    async def read(self, target: Target, host: Host) -> Reading:
        """`uploads_listed`, and what changed since the last look."""
        try:
            if target.name not in self._shelves:
                (((clock,),),) = await host.postgres.ask(target.address, (_CLOCK,))
                self._shelves[target.name] = _Shelf(float(clock or 0) - _LOOK_BACK_S)
            shelf = self._shelves[target.name]
            wanted = f"SELECT id, body, at FROM uploads WHERE at >= {shelf.since!r}"  # noqa: S608  # a number of ours
            ((clock,),), rows = await host.postgres.ask(target.address, (_CLOCK, wanted))
        except PostgresRefused as refusal:
            known = refusal.code == _NO_SUCH_TABLE
            return Reading(self.kind, target.name, error=None if known else str(refusal))
        except (OSError, ValueError) as error:
            return Reading(self.kind, target.name, error=f"the store could not be listed: {error!r}")
        found = {str(row[0]): str(row[1]) for row in rows}
        ages = {str(row[0]): float(clock or 0) - float(row[2] or 0) for row in rows}
        now = host.clock.now()
        came = [_event("document_stored", key, found[key], now - ages[key]) for key in found if key not in shelf.held]
        went = [_event("document_gone", key, body, now) for key, body in shelf.held.items() if key not in found]
        shelf.held = found
        return Reading(self.kind, target.name, values={"uploads_listed": float(len(found))}, events=(*came, *went))


def _event(name: str, key: str, body: str, mono: float) -> dict[str, Any]:
    marker = _MARKER.search(body)
    return {"name": name, "document": key, "marker": marker[0] if marker else None, "mono": mono}
