"""Every search in the vector store takes longer, in the server itself: an index that no longer fits, a busy disk.

Connections, logins and small questions stay quick, so a check that pings sees nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips import tables
from chaos.faults.grips.grip import ANSWER_S, Grip, grips_in
from chaos.faults.grips.sightings import every_one
from chaos.inventory import Target
from chaos.ports import Host
from chaos.settings import setting
from chaos.units import Duration


@dataclass(frozen=True)
class VectorStoreSlow:
    """Delays statements that read the table."""

    kind: ClassVar[str] = "vector_store_slow"
    summary: ClassVar[str] = "Searches take longer in the vector store itself, which answers everything else at once."
    fidelity: ClassVar[str] = "service"
    observer: ClassVar[str] = (
        "a question of its own to the table takes longer than the same one to the rows under our mark"
    )

    delay: Duration = setting("how much longer a search takes", default=Duration(0.5), least=0.05, most=60)
    table: str = setting("the table that searches look into", default="documents")

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target must speak PostgreSQL's protocol, the table have a plain name."""
        return tables.not_postgres(targets, table=self.table)

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """See that there is something to search. Raises CannotInject for a table that is empty or not there."""
        return {**await tables.prepared(self.kind, self.table, targets, host), "delay_s": float(self.delay)}

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Move the table away and let a search sleep once before it is looked into. Raises CannotInject."""
        del targets
        slow = f"WITH slow AS MATERIALIZED (SELECT pg_sleep({undo['delay_s']}) AS slept)"
        query = f"{slow} SELECT hidden.* FROM slow, {{hidden}} AS hidden WHERE slow.slept IS NOT NULL"  # noqa: S608  # a number of ours
        await tables.stand_in(undo, query, host)

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """A question takes at least half of the delay longer than to the rows themselves."""
        del targets
        return await every_one(_seen_slow(grip, undo, host) for grip in grips_in(undo))

    async def revert(self, undo: Undo, host: Host) -> None:
        """Give the table its name back. Raises RevertFailed."""
        await tables.take_away(undo, host)

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """There are rows where searches look, and nothing under our mark."""
        del targets
        return await tables.seen_whole(undo, host)


async def _seen_slow(grip: Grip, undo: Undo, host: Host) -> Sighting:
    try:
        hidden, direct_s = await _timed(grip, undo["mark"], undo, host)
        if hidden is None:
            return Sighting(seen=False, what=f"{grip.name}: nothing under our mark to compare with")
        _, took_s = await _timed(grip, undo["table"], undo, host)
    except tables.TROUBLE as problem:
        return tables.silent(grip, problem)
    told = (
        f"{grip.name}: a question to {undo['table']} took {took_s * 1000:.0f} ms, to the rows {direct_s * 1000:.0f} ms"
    )
    return Sighting(took_s - direct_s >= undo["delay_s"] / 2, told)


async def _timed(grip: Grip, table: str, undo: Undo, host: Host) -> tuple[int | None, float]:
    began = host.clock.now()
    rows = await tables.count(grip, table, host, timeout_s=ANSWER_S + 2 * undo["delay_s"])
    return rows, host.clock.now() - began
