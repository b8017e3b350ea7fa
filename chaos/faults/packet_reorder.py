"""Packets to or from the target overtake each other; TCP waits for the late ones, or takes them for lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from chaos.faults.fault import Undo
from chaos.faults.grips.packets import ShareFault, seeded, which_way
from chaos.faults.grips.rules import Way
from chaos.ports import Segments
from chaos.settings import setting
from chaos.units import Duration, Ratio


@dataclass(frozen=True)
class PacketReorder(ShareFault):
    """Holds a share of the packets back until later ones of the same connection have passed."""

    kind: ClassVar[str] = "packet_reorder"
    summary: ClassVar[str] = "A share of the packets to and from the target is overtaken by later ones."
    observer: ClassVar[str] = (
        "TCP at the observer's end of a direct talk hears of overtaken segments or gets some early"
    )

    # Were more than half held back, the others would be those out of order.
    share: Ratio = setting("share of the packets that are overtaken", default=Ratio(0.05), least=0.01, most=0.5)
    # TCP takes a segment for lost when three later ones have come (RFC 5681).
    by: int = setting("so many later packets of the connection pass first", default=3, least=1, most=100)
    at_most: Duration = setting("a packet that none follows waits so long", default=Duration(0.02), least=0.001, most=1)
    direction: Way = which_way()
    seed: int = seeded()

    def link(self) -> tuple[str, Mapping[str, Any]]:
        """Held back, not delayed for good."""
        return "shuffling", {"share": float(self.share), "by": self.by, "at_most_s": float(self.at_most)}

    def harmed(self, talk: Segments, undo: Undo) -> bool:
        """A segment that came late was early for those behind it."""
        del undo
        return talk.reordered > 0 or talk.early > 0
