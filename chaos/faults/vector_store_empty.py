"""A vector store answers every search at once, and finds nothing: restored without rows, or pointed at a new index.

The table is moved out of its users' sight and an empty one of the same shape takes its name, in one transaction.
Nothing is copied or deleted, so the undo is a name, and it is in the database: it outlives us, the server and a crash.

    documents: all rows ── one transaction ──► documents: empty     "our mark": all rows
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.fault import CannotInject, RevertFailed, Sighting, Undo
from chaos.faults.grips.grip import ANSWER_S, Grip, grips_in
from chaos.faults.grips.marks import new_mark
from chaos.faults.grips.sightings import every_one
from chaos.faults.grips.together import all_of
from chaos.inventory import Target
from chaos.ports import Host, PostgresRefused, Rows
from chaos.settings import setting

_NO_SUCH_TABLE = "42P01"
"""SQLSTATE `undefined_table` (PostgreSQL, appendix A)."""
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_TROUBLE = (OSError, PostgresRefused)


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
        found = [
            f"{t.name}: it speaks {t.wire}, not PostgreSQL's protocol; choose a target of role vector-store"
            for t in targets
            if t.wire != "postgres"
        ]
        if not _NAME.fullmatch(self.table):
            found.append(f"table: {self.table!r} is no plain name of a table (lower case letters, digits, _)")
        return tuple(found)

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """See that there is something to hide. Raises CannotInject for a table that is empty or not there."""
        grips = [Grip.of(target) for target in targets]
        for grip in grips:
            try:
                rows = await _count(grip, self.table, host)
            except _TROUBLE as problem:
                raise CannotInject(
                    f"{grip.name}: no count of its table {self.table}: {problem!r}; see with `brownout status` whether "
                    "it is ready"
                ) from problem
            if not rows:
                raise CannotInject(f"{grip.name}: its table {self.table} is empty or not there: nothing to take away")
        return {"mark": new_mark(self.kind), "table": self.table, "targets": [grip.to_json() for grip in grips]}

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Move the table away and put an empty one in its place. Raises CannotInject."""
        del targets
        table, mark = undo["table"], undo["mark"]
        steps = (
            f'ALTER TABLE {table} RENAME TO "{mark}"',
            f'CREATE TABLE {table} AS SELECT * FROM "{mark}" WHERE 1 = 0',  # noqa: S608  # checked names
        )
        for grip in grips_in(undo):
            try:
                await _ask(grip, steps, host)
            except _TROUBLE as problem:
                raise CannotInject(f"{grip.name}: its table {table} could not be moved: {problem!r}") from problem

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """No row where searches look, all of them under our mark."""
        del targets
        return await every_one(_seen(grip, undo, host, away=True) for grip in grips_in(undo))

    async def revert(self, undo: Undo, host: Host) -> None:
        """Give the table its name back. Raises RevertFailed."""
        await all_of(_bring_back(grip, undo["table"], undo["mark"], host) for grip in grips_in(undo))

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """There are rows where searches look, and nothing under our mark."""
        del targets
        return await every_one(_seen(grip, undo, host, away=False) for grip in grips_in(undo))


async def _ask(grip: Grip, statements: Sequence[str], host: Host) -> tuple[Rows, ...]:
    return await host.postgres.ask(grip.address, statements, timeout_s=ANSWER_S)


async def _count(grip: Grip, table: str, host: Host) -> int | None:
    """Rows of a table; None when it is not there. Raises OSError or PostgresRefused."""
    try:
        ((row,),) = await _ask(grip, (f'SELECT count(*) FROM "{table}"',), host)  # noqa: S608  # a checked name, or ours
    except PostgresRefused as refused:
        if refused.code == _NO_SUCH_TABLE:
            return None
        raise
    return int(row[0] or 0)


async def _seen(grip: Grip, undo: Undo, host: Host, *, away: bool) -> Sighting:
    table, mark = undo["table"], undo["mark"]
    try:
        here, hidden = await _count(grip, table, host), await _count(grip, mark, host)
    except _TROUBLE as problem:
        return Sighting(seen=False, what=f"{grip.name}: {grip.address} does not answer: {problem!r}")
    seen = (here == 0 and bool(hidden)) if away else (bool(here) and hidden is None)
    told = "nothing" if hidden is None else f"{hidden} rows"
    return Sighting(seen, f"{grip.name}: {here or 'no'} rows in {table}, {told} under our mark")


async def _bring_back(grip: Grip, table: str, mark: str, host: Host) -> None:
    """The data outlives the server, so a dead one leaves the harm in place: that is a failure, not an end."""
    by_hand = f'DROP TABLE {table}; ALTER TABLE "{mark}" RENAME TO {table};'
    try:
        if await _count(grip, mark, host) is None:
            return
        here = await _count(grip, table, host)
        if here:
            raise RevertFailed(
                f"{grip.name}: {here} rows were written into the empty {table} meanwhile and would be lost; the others "
                f'are in "{mark}"; when the new ones are safe, by hand: {by_hand}'
            )
        drop = () if here is None else (f"DROP TABLE {table}",)
        await _ask(grip, (*drop, f'ALTER TABLE "{mark}" RENAME TO {table}'), host)
    except _TROUBLE as problem:
        where, _, port = grip.address.rpartition(":")
        raise RevertFailed(
            f'{grip.name}: its rows are still in "{mark}": {problem!r}; by hand, when it is up: '
            f"psql -h {where} -p {port} -U postgres -c '{by_hand}'"
        ) from problem
