"""The vector store serves an edition from before: the right documents are found, and what they say is out of date.

Every digit in the texts is another one, as prices, dates and limits are after a year. Vectors and ids stay as they are,
so that whoever counts only what is found sees nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.fault import CannotInject, Sighting, Undo
from chaos.faults.grips import tables
from chaos.faults.grips.grip import Grip, grips_in
from chaos.faults.grips.sightings import every_one
from chaos.inventory import Target
from chaos.ports import Host
from chaos.settings import setting


@dataclass(frozen=True)
class VectorStoreStale:
    """Lets searches find outdated texts."""

    kind: ClassVar[str] = "vector_store_stale"
    summary: ClassVar[str] = "The vector store finds the right documents in an old edition, with other numbers in them."
    fidelity: ClassVar[str] = "data"
    observer: ClassVar[str] = (
        "a connection of its own finds texts where searches look that are not among those under our mark"
    )

    column: str = setting("the column that holds the texts", default="body")
    table: str = setting("the table that searches look into", default="documents")

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target must speak PostgreSQL's protocol, table and column have plain names."""
        return tables.not_postgres(targets, table=self.table, column=self.column)

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """See that there are numbers in the texts. Raises CannotInject for a table without, or that is not there."""
        undo = await tables.prepared(self.kind, self.table, targets, host)
        columns = [await self._columns(grip, host) for grip in grips_in(undo)]
        return {**undo, "column": self.column, "columns": columns}

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Move each table away and let its old edition be found. Raises CannotInject."""
        del targets
        for record, columns in zip(undo["targets"], undo["columns"], strict=True):
            old = f"{_outdated(undo['column'])} AS {undo['column']}"
            chosen = ", ".join(old if name == undo["column"] else f'"{name}"' for name in columns)
            query = f"SELECT {chosen} FROM {{hidden}}"  # noqa: S608  # checked names, and the server's own
            await tables.stand_in({**undo, "targets": [record]}, query, host)

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """Some texts where searches look are not among those under our mark."""
        del targets
        return await every_one(_seen_old(grip, undo, host) for grip in grips_in(undo))

    async def revert(self, undo: Undo, host: Host) -> None:
        """Give the table its name back. Raises RevertFailed."""
        await tables.take_away(undo, host)

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """There are rows where searches look, and nothing under our mark."""
        del targets
        return await tables.seen_whole(undo, host)

    async def _columns(self, grip: Grip, host: Host) -> list[str]:
        """Names of the table's columns in order. Raises CannotInject."""
        where = f"WHERE table_name = '{self.table}' ORDER BY ordinal_position"
        listed = f"SELECT column_name FROM information_schema.columns {where}"  # noqa: S608  # a checked name
        numbers = f"SELECT count(*) FROM {self.table} WHERE {_outdated(self.column)} <> {self.column}"  # noqa: S608  # checked names
        try:
            (found,) = await tables.ask(grip, (listed,), host)
            ages = await tables.number(grip, numbers, host)
        except tables.TROUBLE as problem:
            raise CannotInject(
                f"{grip.name}: no look at the texts in {self.table}.{self.column}: {problem!r}"
            ) from problem
        if not ages:
            raise CannotInject(
                f"{grip.name}: no text in {self.table}.{self.column} holds a number that could be outdated"
            )
        return [str(name) for (name,) in found]


def _outdated(column: str) -> str:
    return f"translate({column}, '0123456789', '9012345678')"


async def _seen_old(grip: Grip, undo: Undo, host: Host) -> Sighting:
    table, column, mark = undo["table"], undo["column"], undo["mark"]
    query = f'SELECT count(*) FROM (SELECT {column} FROM {table} EXCEPT SELECT {column} FROM "{mark}") AS old'  # noqa: S608  # checked names
    try:
        hidden = await tables.count(grip, mark, host)
        old = await tables.number(grip, query, host) if hidden else 0
    except tables.TROUBLE as problem:
        return tables.silent(grip, problem)
    return Sighting(old > 0, f"{grip.name}: {old} texts in {table} are not among the {hidden or 'no'} under our mark")
