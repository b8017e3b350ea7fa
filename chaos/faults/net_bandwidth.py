"""The edge to a target becomes narrow: bytes in one direction pass at a fixed rate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from chaos.faults.grips.edges import SlowTalk, by_caller, which_way
from chaos.faults.grips.one_toxic import Direction, Toxic
from chaos.inventory import Target
from chaos.ports import Host
from chaos.settings import setting
from chaos.units import Size

_WATCHED_S = 0.1  # so long the observer's talk lasts through the edge


@dataclass(frozen=True)
class NetBandwidth(SlowTalk):
    """Limits the rate on the fault proxy's listener before a target."""

    kind: ClassVar[str] = "net_bandwidth"
    summary: ClassVar[str] = "Bytes to or from the target pass at a limited rate on each connection."
    fidelity: ClassVar[str] = "network"
    observer: ClassVar[str] = "the observer's own talk through the edge lasts longer than a direct one, by the rate"

    # In whole KB, as the toxic counts. What is wider than this is no harm that a talk of fair length could show.
    rate: Size = setting("bytes per second on each connection, whole KB", least=1000, most=500_000)
    direction: Direction = which_way()
    from_: str | None = by_caller()

    def toxic(self) -> Toxic:
        """KB per second, 1 KB is 1000 bytes."""
        return Toxic("bandwidth", {"rate": round(self.rate / 1000)}, direction=self.direction)

    async def expected(self, _targets: tuple[Target, ...], _host: Host, /) -> Mapping[str, Any]:
        """A talk as long as shows the rate."""
        return {"size": max(1, round(self.rate * _WATCHED_S)), "added_s": _WATCHED_S}
