"""A part of the rows is missing, as after a restore or an ingest that stopped midway; the rest is found as ever."""

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
from chaos.units import Ratio


@dataclass(frozen=True)
class VectorStorePartial(StandIn):
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
        """And some rows must stay and some go."""
        odd = () if 0 < self.missing < 1 else (f"missing: {self.missing} is all or nothing; choose a share in between",)
        return (*odd, *super().problems(targets))

    async def expected(self, grips: tuple[Grip, ...], host: Host) -> Mapping[str, Any]:
        """How many rows are to stay at each target."""
        counts = [await tables.count(grip, self.table, host) or 0 for grip in grips]
        kept = [round(rows * (1 - self.missing)) for rows in counts]
        for grip, rows, keep in zip(grips, counts, kept, strict=True):
            if keep in (0, rows):
                raise CannotInject(f"{grip.name}: {self.missing} of its {rows} rows is all or nothing")
        return {"kept": dict(zip((grip.name for grip in grips), kept, strict=True))}

    def view(self, undo: Undo, target: str) -> str:
        """The first rows alone."""
        return f"SELECT * FROM {{hidden}} ORDER BY 1 LIMIT {undo['kept'][target]}"  # noqa: S608  # a number of ours

    async def seen_harmed(self, grip: Grip, undo: Undo, host: Host) -> Sighting:
        """As many rows where searches look as were to stay, and more under our mark."""
        kept = undo["kept"][grip.name]
        return await tables.seen(grip, undo, lambda here, hidden: here == kept < hidden, host)
