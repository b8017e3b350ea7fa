"""Connections to the target close after so many bytes: long answers are cut, short ones pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from chaos.faults.grips.edges import EndedTalk, by_caller, which_way
from chaos.faults.grips.one_toxic import Direction, Toxic
from chaos.inventory import Target
from chaos.ports import Host
from chaos.settings import setting
from chaos.units import Size


@dataclass(frozen=True)
class NetLimit(EndedTalk):
    """Counts bytes on the fault proxy's listener before a target."""

    kind: ClassVar[str] = "net_limit"
    summary: ClassVar[str] = "Each connection to the target closes after a number of bytes, wherever that may be."
    fidelity: ClassVar[str] = "network"
    observer: ClassVar[str] = "the observer's own talk through the edge breaks off at the limit, a direct one is whole"

    # The observer has to talk beyond the limit, so it must be one that a talk reaches soon.
    after: Size = setting("bytes that pass on each connection", least=0, most=65_536)
    direction: Direction = which_way()
    from_: str | None = by_caller()

    def toxic(self) -> Toxic:
        """Bytes on each connection."""
        return Toxic("limit_data", {"bytes": int(self.after)}, direction=self.direction)

    async def expected(self, _targets: tuple[Target, ...], _host: Host, /) -> Mapping[str, Any]:
        """A talk that goes beyond the limit, and an end at it."""
        most = int(self.after) if self.direction == "downstream" else 2**31
        return {"endings": ["broken"], "most": most, "size": int(self.after) + 1}
