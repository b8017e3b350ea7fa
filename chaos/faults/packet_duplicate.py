"""Packets to or from the target arrive twice; TCP notices and reports it to the sender."""

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
class PacketDuplicate(ShareFault):
    """Sends a copy after a share of the packets."""

    kind: ClassVar[str] = "packet_duplicate"
    summary: ClassVar[str] = "A share of the packets to and from the target arrives twice."
    observer: ClassVar[str] = "TCP at the observer's end of a direct talk hears of copies, or gets some"

    share: Ratio = setting("share of the packets that come twice", default=Ratio(0.05), least=0.01, most=1)
    direction: Way = which_way()
    seed: int = seeded()

    def link(self) -> tuple[str, Mapping[str, Any]]:
        """One copy each."""
        return "doubling", {"share": float(self.share)}

    def harmed(self, talk: Segments, undo: Undo) -> bool:
        """Either end got something again that was not sent again."""
        del undo
        return talk.copied > 0 or talk.again > 0
