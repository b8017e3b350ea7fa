"""Packets to or from the target arrive with a bit turned over; TCP finds the checksum wrong and throws them away."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from chaos.faults.fault import Undo
from chaos.faults.grips.packets import ShareFault, seeded, which_way
from chaos.faults.grips.rules import Way
from chaos.ports import Segments
from chaos.settings import setting
from chaos.units import Ratio


@dataclass(frozen=True)
class PacketCorrupt(ShareFault):
    """Turns over one bit of what TCP carries, in a share of the packets."""

    kind: ClassVar[str] = "packet_corrupt"
    summary: ClassVar[str] = "A share of the packets to and from the target arrives damaged, and is discarded by TCP."
    observer: ClassVar[str] = "TCP at the observer's end of a direct talk counts wrong checksums or has to send again"

    share: Ratio = setting("share of the packets that are damaged", default=Ratio(0.05), least=0.01, most=1)
    direction: Way = which_way()
    seed: int = seeded()

    def link(self) -> tuple[str, Mapping[str, Any]]:
        """One bit each."""
        return "garbling", {"share": float(self.share)}

    def harmed(self, talk: Segments, undo: Undo) -> bool:
        """What is damaged on the way to another network is counted there; here it is only sent again."""
        return talk.rtt_s is None or talk.garbled > 0 or (undo["way"] == "upstream" and talk.resent > 0)
