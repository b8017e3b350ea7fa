"""A cache forgets everything at once, as after a restart without its file, a FLUSHALL by hand, or a failover to an
empty replica.

What it held is moved out of its users' reach in one atomic step (SWAPDB with an empty database), so nothing leaves the
server and the undo is two words. The revert moves every entry back that has not been written anew or expired meanwhile.

    database 0: all entries ── SWAPDB ──► database 0: empty, filled anew     database n: all entries and our mark
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.fault import CannotInject, Undo
from chaos.faults.grips.entries_away import EntriesAway, ask, pairs_in
from chaos.inventory import Target
from chaos.ports import Host, Need, RedisRefused


@dataclass(frozen=True)
class CacheFlush(EntriesAway):
    """Empties a cache."""

    kind: ClassVar[str] = "cache_flush"
    summary: ClassVar[str] = "The cache forgets all entries at once; at the revert those not written anew come back."
    fidelity: ClassVar[str] = "data"
    observer: ClassVar[str] = (
        "a connection of its own finds the entries, with our mark, where no client of the cache looks"
    )
    needs: ClassVar[tuple[Need, ...]] = ()

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Put our mark among the entries and swap them all away. Raises CannotInject."""
        del targets
        for grip, spare in pairs_in(undo):
            steps = (("SELECT", "0"), ("MULTI",), ("SET", undo["mark"], "1"), ("SWAPDB", "0", spare), ("EXEC",))
            try:
                await ask(grip, steps, host)
            except (OSError, RedisRefused) as problem:
                raise CannotInject(f"{grip.name}: the cache did not swap its databases: {problem!r}") from problem
