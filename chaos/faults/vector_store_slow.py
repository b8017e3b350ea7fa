"""Every search in the vector store takes longer, in the server itself: an index that no longer fits, a busy disk.

Connections, logins and small questions stay quick, so a check that pings sees nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips import tables
from chaos.faults.grips.grip import ANSWER_S, Grip
from chaos.faults.grips.stand_in import StandIn
from chaos.ports import Host
from chaos.settings import setting
from chaos.units import Duration


@dataclass(frozen=True)
class VectorStoreSlow(StandIn):
    """Delays statements that read the table."""

    kind: ClassVar[str] = "vector_store_slow"
    summary: ClassVar[str] = "Searches take longer in the vector store itself, which answers everything else at once."
    fidelity: ClassVar[str] = "service"
    observer: ClassVar[str] = (
        "a question of its own to the table takes longer than the same one to the rows under our mark"
    )

    delay: Duration = setting("how much longer a search takes", default=Duration(0.5), least=0.05, most=60)
    table: str = setting("the table that searches look into", default="documents")

    async def expected(self, _grips: tuple[Grip, ...], _host: Host) -> Mapping[str, Any]:
        """How long a search sleeps."""
        return {"delay_s": float(self.delay)}

    def view(self, undo: Undo, _target: str) -> str:
        """All rows, after one sleep a search."""
        slow = f"WITH slow AS MATERIALIZED (SELECT pg_sleep({undo['delay_s']}) AS slept)"
        return f"{slow} SELECT hidden.* FROM slow, {{hidden}} AS hidden WHERE slow.slept IS NOT NULL"  # noqa: S608  # a number of ours

    async def seen_harmed(self, grip: Grip, undo: Undo, host: Host) -> Sighting:
        """A question takes at least half of the delay longer than to the rows themselves."""
        try:
            hidden, direct_s = await _timed(grip, undo["mark"], undo, host)
            if hidden is None:
                return Sighting(seen=False, what=f"{grip.name}: nothing under our mark to compare with")
            _, took_s = await _timed(grip, undo["table"], undo, host)
        except tables.TROUBLE as problem:
            return tables.silent(grip, problem)
        took_ms, direct_ms = took_s * 1000, direct_s * 1000
        told = f"{grip.name}: a question to {undo['table']} took {took_ms:.0f} ms, to the rows {direct_ms:.0f} ms"
        return Sighting(took_s - direct_s >= undo["delay_s"] / 2, told)


async def _timed(grip: Grip, table: str, undo: Undo, host: Host) -> tuple[int | None, float]:
    began = host.clock.now()
    rows = await tables.count(grip, table, host, timeout_s=ANSWER_S + 2 * undo["delay_s"])
    return rows, host.clock.now() - began
