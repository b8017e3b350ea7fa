"""Packets to or from the target are lost below TCP, which sends them again after a while."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from chaos.faults.fault import Undo
from chaos.faults.grips.grip import Grip
from chaos.faults.grips.packets import ShareFault, packets_to_see, seeded, which_way
from chaos.faults.grips.rules import Way
from chaos.ports import Host, Segments
from chaos.settings import setting
from chaos.units import Ratio


@dataclass(frozen=True)
class PacketLoss(ShareFault):
    """Drops a share of the packets right before the target's socket."""

    kind: ClassVar[str] = "packet_loss"
    summary: ClassVar[str] = "A share of the packets to and from the target is lost, one by one or in bursts."
    observer: ClassVar[str] = "TCP at the observer's end of a direct talk sends segments again or misses some"

    share: Ratio = setting("share of the packets that are lost", default=Ratio(0.05), least=0.01, most=1)
    burst: int = setting("so many are lost in a row, on average", default=1, least=1, most=100)
    direction: Way = which_way()
    seed: int = seeded()

    def link(self) -> tuple[str, Mapping[str, Any]]:
        """Gilbert's model."""
        return "lossy", {"share": float(self.share), "burst": self.burst}

    def trouble(self) -> tuple[str, ...]:
        """A link that is good for less than one packet between two bursts has none."""
        most = self.burst / (self.burst + 1)
        if self.burst == 1 or self.share <= most:
            return ()
        return (f"with bursts of {self.burst} at most {most:.0%} can be lost, not {self.share}",)

    async def learn(self, _grips: tuple[Grip, ...], _host: Host, /) -> Mapping[str, Any]:
        """Bursts come more rarely than single losses."""
        return {"packets": packets_to_see(float(self.share) / self.burst)}

    def harmed(self, talk: Segments, undo: Undo) -> bool:
        """Something was sent again, or came without what was before it; or one kernel did not hear of the other."""
        del undo
        return talk.rtt_s is None or talk.resent > 0 or talk.early > 0
