"""A part of the rows is missing, as after a restore or an ingest that stopped midway; the rest is found as ever."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.fault import CannotInject, Sighting, Undo
from chaos.faults.grips import tables
from chaos.faults.grips.grip import grips_in
from chaos.inventory import Target
from chaos.ports import Host
from chaos.settings import setting
from chaos.units import Ratio


@dataclass(frozen=True)
class VectorStorePartial:
    """Hides a share of the rows from searches."""

    kind: ClassVar[str] = "vector_store_partial"
    summary: ClassVar[str] = (
        "The vector store has lost a part of its rows, and nothing else shows; they come back whole."
    )
    fidelity: ClassVar[str] = "data"
    observer: ClassVar[str] = (
        "a connection of its own counts all rows under our mark, and where searches look only those that were to stay"
    )

    missing: Ratio = setting(
        "share of the rows that are missing: the last ones by the first column", default=Ratio(0.5)
    )
    table: str = setting("the table that searches look into", default="documents")

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target must speak PostgreSQL's protocol, some rows must stay and some go."""
        odd = () if 0 < self.missing < 1 else (f"missing: {self.missing} is all or nothing; choose a share in between",)
        return (*odd, *tables.not_postgres(targets, table=self.table))

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """See how many rows are to stay. Raises CannotInject for a table with too few, or that is not there."""
        undo = await tables.prepared(self.kind, self.table, targets, host)
        counts = [await tables.count(grip, self.table, host) or 0 for grip in grips_in(undo)]
        kept = [round(rows * (1 - self.missing)) for rows in counts]
        for grip, rows, keep in zip(grips_in(undo), counts, kept, strict=True):
            if keep in (0, rows):
                raise CannotInject(f"{grip.name}: {self.missing} of its {rows} rows is all or nothing")
        return {**undo, "kept": dict(zip((grip.name for grip in grips_in(undo)), kept, strict=True))}

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Move each table away and let its first rows alone be found. Raises CannotInject."""
        del targets
        for record in undo["targets"]:
            query = f"SELECT * FROM {{hidden}} ORDER BY 1 LIMIT {undo['kept'][record['name']]}"  # noqa: S608  # a number of ours
            await tables.stand_in({**undo, "targets": [record]}, query, host)

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """Fewer rows where searches look than under our mark."""
        del targets
        kept = set(undo["kept"].values())
        return await tables.seen(undo, lambda here, hidden: here in kept and here < hidden, host)

    async def revert(self, undo: Undo, host: Host) -> None:
        """Give the table its name back. Raises RevertFailed."""
        await tables.take_away(undo, host)

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """There are rows where searches look, and nothing under our mark."""
        del targets
        return await tables.seen_whole(undo, host)
