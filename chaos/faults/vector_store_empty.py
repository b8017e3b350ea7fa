"""A vector store answers every search at once, and finds nothing: restored without rows, or pointed at a new index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips import tables
from chaos.faults.grips.grip import Grip
from chaos.faults.grips.stand_in import StandIn
from chaos.ports import Host
from chaos.settings import setting


@dataclass(frozen=True)
class VectorStoreEmpty(StandIn):
    """Empties the table that searches look into."""

    kind: ClassVar[str] = "vector_store_empty"
    summary: ClassVar[str] = "The vector store is quick and healthy, and its table is empty; the rows come back whole."
    fidelity: ClassVar[str] = "data"
    observer: ClassVar[str] = (
        "a connection of its own counts no row where searches look, and all of them under our mark"
    )

    table: str = setting("the table that searches look into", default="documents")

    def view(self, _undo: Undo, _target: str) -> str:
        """Nothing."""
        return "SELECT * FROM {hidden} WHERE 1 = 0"

    async def seen_harmed(self, grip: Grip, undo: Undo, host: Host) -> Sighting:
        """No row where searches look, all of them under our mark."""
        return await tables.seen(grip, undo, lambda here, hidden: here == 0 < hidden, host)
