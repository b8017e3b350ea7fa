"""The vector store takes connections, answers a ping, and refuses every search: a collection that is not loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips import tables
from chaos.faults.grips.grip import Grip, grips_in
from chaos.faults.grips.sightings import every_one
from chaos.inventory import Target
from chaos.ports import Host, PostgresRefused
from chaos.settings import setting

_REFUSING = "SELECT * FROM {hidden} WHERE current_setting('brownout.collection_is_not_loaded') IS NOT NULL"
"""There is no such setting, so whoever reads a row gets an error (42704, undefined_object)."""


@dataclass(frozen=True)
class VectorStoreUnready:
    """Lets every search fail."""

    kind: ClassVar[str] = "vector_store_unready"
    summary: ClassVar[str] = "The vector store is up and looks healthy, and refuses every search at once."
    fidelity: ClassVar[str] = "service"
    observer: ClassVar[str] = "a connection of its own gets an answer to SELECT 1, and an error for the table"

    table: str = setting("the table that searches look into", default="documents")

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target must speak PostgreSQL's protocol, the table have a plain name."""
        return tables.not_postgres(targets, table=self.table)

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """See that searches are served. Raises CannotInject for a table that is empty or not there."""
        return await tables.prepared(self.kind, self.table, targets, host)

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Move the table away and let an error answer in its place. Raises CannotInject."""
        del targets
        await tables.stand_in(undo, _REFUSING, host)

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """The server answers, the table does not."""
        del targets
        return await every_one(_seen_refusing(grip, undo["table"], host) for grip in grips_in(undo))

    async def revert(self, undo: Undo, host: Host) -> None:
        """Give the table its name back. Raises RevertFailed."""
        await tables.take_away(undo, host)

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """There are rows where searches look, and nothing under our mark."""
        del targets
        return await tables.seen_whole(undo, host)


async def _seen_refusing(grip: Grip, table: str, host: Host) -> Sighting:
    try:
        await tables.number(grip, "SELECT 1", host)
    except tables.TROUBLE as problem:
        return tables.silent(grip, problem)
    try:
        rows = await tables.count(grip, table, host)
    except PostgresRefused as refused:
        return Sighting(seen=True, what=f"{grip.name}: SELECT 1 is answered, {table} is refused: {refused}")
    except OSError as problem:
        return tables.silent(grip, problem)
    return Sighting(seen=False, what=f"{grip.name}: {rows or 'no'} rows in {table}")
