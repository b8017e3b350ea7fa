"""Bytes arrive in small pieces with pauses between them: what one read used to bring takes many."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from chaos.faults.grips.edges import SlowTalk, by_caller, which_way
from chaos.faults.grips.one_toxic import Direction, Toxic
from chaos.inventory import Target
from chaos.ports import Host
from chaos.settings import setting
from chaos.units import Duration, Size

_PIECES = 20  # of the observer's talk
_ENOUGH_S = 2.0  # that long a talk shows the pauses, however long they are


@dataclass(frozen=True)
class NetSlicer(SlowTalk):
    """Slices on the fault proxy's listener before a target."""

    kind: ClassVar[str] = "net_slicer"
    summary: ClassVar[str] = "Bytes to or from the target arrive in small pieces with a pause after each."
    fidelity: ClassVar[str] = "network"
    observer: ClassVar[str] = "the observer's own talk through the edge lasts longer than a direct one, by the pauses"

    piece: Size = setting("size of a piece, on average", default=Size(64), least=1, most=1400)
    variation: Size = setting("a piece is up to this much smaller or larger", default=Size(0), least=0, most=1399)
    # Pieces without a pause run together again in the receiver's kernel, so nobody could see them.
    pause: Duration = setting("pause after each piece", default=Duration(0.01), least=0.005, most=10)
    direction: Direction = which_way()
    from_: str | None = by_caller()

    def obstacles(self, _targets: tuple[Target, ...], /) -> tuple[str, ...]:
        """No piece may come out empty."""
        if self.variation < self.piece:
            return ()
        return (f"variation {self.variation} is not less than the piece {self.piece}; a piece needs a byte at least",)

    def toxic(self) -> Toxic:
        """The pause is in microseconds."""
        attributes = {
            "average_size": int(self.piece),
            "size_variation": int(self.variation),
            "delay": round(self.pause * 1e6),
        }
        return Toxic("slicer", attributes, direction=self.direction)

    async def expected(self, _targets: tuple[Target, ...], _host: Host, /) -> Mapping[str, Any]:
        """A talk of as many pieces as show the pauses."""
        return {"size": _PIECES * int(self.piece), "added_s": min(_PIECES * float(self.pause), _ENOUGH_S)}
