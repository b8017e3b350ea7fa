"""The vector store takes connections, answers a ping, and refuses every search: a collection that is not loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips import tables
from chaos.faults.grips.grip import Grip
from chaos.faults.grips.stand_in import StandIn
from chaos.ports import Host, PostgresRefused
from chaos.settings import setting

_REFUSING = "SELECT * FROM {hidden} WHERE current_setting('brownout.collection_is_not_loaded') IS NOT NULL"
"""There is no such setting, so whoever reads a row gets an error (42704, undefined_object)."""


@dataclass(frozen=True)
class VectorStoreUnready(StandIn):
    """Lets every search fail."""

    kind: ClassVar[str] = "vector_store_unready"
    summary: ClassVar[str] = "The vector store is up and looks healthy, and refuses every search at once."
    fidelity: ClassVar[str] = "service"
    observer: ClassVar[str] = "a connection of its own gets an answer to SELECT 1, and an error for the table"

    table: str = setting("the table that searches look into", default="documents")

    def view(self, _undo: Undo, _target: str) -> str:
        """An error."""
        return _REFUSING

    async def seen_harmed(self, grip: Grip, undo: Undo, host: Host) -> Sighting:
        """The server answers, the table does not."""
        table = undo["table"]
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
