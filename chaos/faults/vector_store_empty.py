"""A vector store answers every search at once, and finds nothing: restored without rows, or pointed at a new index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips import tables
from chaos.inventory import Target
from chaos.ports import Host
from chaos.settings import setting


@dataclass(frozen=True)
class VectorStoreEmpty:
    """Empties the table that searches look into."""

    kind: ClassVar[str] = "vector_store_empty"
    summary: ClassVar[str] = "The vector store is quick and healthy, and its table is empty; the rows come back whole."
    fidelity: ClassVar[str] = "data"
    observer: ClassVar[str] = (
        "a connection of its own counts no row where searches look, and all of them under our mark"
    )

    table: str = setting("the table that searches look into", default="documents")

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target must speak PostgreSQL's protocol, the table have a plain name."""
        return tables.not_postgres(targets, table=self.table)

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """See that there is something to hide. Raises CannotInject for a table that is empty or not there."""
        return await tables.prepared(self.kind, self.table, targets, host)

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Move the table away and let nothing be found in its place. Raises CannotInject."""
        del targets
        await tables.stand_in(undo, "SELECT * FROM {hidden} WHERE 1 = 0", host)

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """No row where searches look, all of them under our mark."""
        del targets
        return await tables.seen(undo, lambda here, hidden: here == 0 < hidden, host)

    async def revert(self, undo: Undo, host: Host) -> None:
        """Give the table its name back. Raises RevertFailed."""
        await tables.take_away(undo, host)

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """There are rows where searches look, and nothing under our mark."""
        del targets
        return await tables.seen_whole(undo, host)
