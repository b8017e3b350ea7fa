"""Many hot entries of a cache expire in the same instant, because they were made in the same instant: by a deployment,
by a job that warms the cache, with a lifetime that has no jitter.

    entries ── COPY ──► another database, until the revert        entries ── expire at one instant ──► nothing
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.fault import CannotInject, Undo
from chaos.faults.grips.entries_away import BATCH, EntriesAway, ask, page_of, pairs_in
from chaos.faults.grips.grip import Grip, grips_in
from chaos.inventory import Target
from chaos.ports import Host, Need, RedisRefused
from chaos.settings import setting
from chaos.units import Ratio

_LONG_AGO = "1"  # ms since 1970: an entry whose time is past is gone before the next command


@dataclass(frozen=True)
class CacheStampede(EntriesAway):
    """Lets entries of a cache expire together."""

    kind: ClassVar[str] = "cache_stampede"
    summary: ClassVar[str] = "Entries of the cache expire in one instant; what is not written anew comes back later."
    fidelity: ClassVar[str] = "data"
    observer: ClassVar[str] = (
        "a connection of its own finds copies of the entries, with our mark, where no client of the cache looks"
    )
    needs: ClassVar[tuple[Need, ...]] = ()

    match: str = setting("only entries whose key fits this glob", default="*")
    share: Ratio = setting("share of those entries, chosen by their keys", default=Ratio(1))

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """Find an empty database for each. Raises CannotInject, also where no entry is chosen."""
        undo = await super().prepare(targets, host)
        for grip in grips_in(undo):
            if not await self._chosen(grip, host):
                raise CannotInject(f"{grip.name}: no entry fits {self.match!r}; valkey-cli --scan tells what there is")
        return undo

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Leave our mark, copy the entries away, then let all of them expire at once. Raises CannotInject."""
        del targets
        for grip, spare in pairs_in(undo):
            try:
                await ask(grip, (("SELECT", spare), ("SET", undo["mark"], "1")), host)
                keys = await self._chosen(grip, host)
                await ask(grip, [("COPY", key, key, "DB", spare) for key in keys], host)
                await ask(grip, (("MULTI",), *(("PEXPIREAT", key, _LONG_AGO) for key in keys), ("EXEC",)), host)
            except (OSError, RedisRefused) as problem:
                raise CannotInject(f"{grip.name}: the cache did not let its entries expire: {problem!r}") from problem

    async def _chosen(self, grip: Grip, host: Host) -> Sequence[str]:
        """Keys of the entries that will expire. The same share of the same keys is the same keys."""
        found: dict[str, None] = {}
        cursor = ""
        while cursor != "0":
            (page,) = await ask(grip, (("SCAN", cursor or "0", "MATCH", self.match, "COUNT", BATCH),), host)
            cursor, keys = page_of(page)
            found.update(dict.fromkeys(key for key in keys if zlib.crc32(key.encode()) < self.share * 2**32))
        return tuple(found)
