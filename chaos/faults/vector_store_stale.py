"""The vector store serves an edition from before: the right documents are found, and what they say is out of date.

Every digit in the texts is another one, as prices, dates and limits are after a year. Vectors and ids stay as they are,
so that whoever counts only what is found sees nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from chaos.faults.fault import CannotInject, Sighting, Undo
from chaos.faults.grips import tables
from chaos.faults.grips.grip import Grip
from chaos.faults.grips.stand_in import StandIn
from chaos.inventory import Target
from chaos.ports import Host
from chaos.settings import setting


@dataclass(frozen=True)
class VectorStoreStale(StandIn):
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
        """And the column."""
        return tables.not_postgres(targets, table=self.table, column=self.column)

    async def expected(self, grips: tuple[Grip, ...], host: Host) -> Mapping[str, Any]:
        """The table's columns at each target, whose texts must hold a number that could be outdated."""
        return {"column": self.column, "columns": {grip.name: await self._columns(grip, host) for grip in grips}}

    def view(self, undo: Undo, target: str) -> str:
        """All rows, with other numbers in their texts."""
        old = f"{_outdated(undo['column'])} AS {undo['column']}"
        names = undo["columns"][target]
        chosen = ", ".join(old if name == undo["column"] else f'"{name}"' for name in names)
        return f"SELECT {chosen} FROM {{hidden}}"  # noqa: S608  # checked names, and the server's own

    async def seen_harmed(self, grip: Grip, undo: Undo, host: Host) -> Sighting:
        """Some texts where searches look are not among those under our mark."""
        table, column, mark = undo["table"], undo["column"], undo["mark"]
        query = f'SELECT count(*) FROM (SELECT {column} FROM {table} EXCEPT SELECT {column} FROM "{mark}") AS old'  # noqa: S608  # checked names
        try:
            hidden = await tables.count(grip, mark, host)
            old = await tables.number(grip, query, host) if hidden else 0
        except tables.TROUBLE as problem:
            return tables.silent(grip, problem)
        return Sighting(
            old > 0, f"{grip.name}: {old} texts in {table} are not among the {hidden or 'no'} under our mark"
        )

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
