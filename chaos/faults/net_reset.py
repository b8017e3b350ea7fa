"""Connections to the target are torn down with RST as soon as something is said on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from chaos.faults.grips.edges import EndedTalk, by_caller, which_way
from chaos.faults.grips.one_toxic import Direction, Toxic
from chaos.inventory import Target
from chaos.ports import Host
from chaos.settings import setting
from chaos.units import Duration


@dataclass(frozen=True)
class NetReset(EndedTalk):
    """Resets on the fault proxy's listener before a target. Connections that are open already end without RST."""

    kind: ClassVar[str] = "net_reset"
    summary: ClassVar[str] = "Connections to the target are reset at their first bytes; new ones too."
    fidelity: ClassVar[str] = "network"
    observer: ClassVar[str] = (
        "the observer's own talk through the edge breaks off without an answer, a direct one is whole"
    )

    after: Duration = setting("time from the first bytes to the reset", default=Duration(0), least=0, most=60)
    direction: Direction = which_way()
    from_: str | None = by_caller()

    def toxic(self) -> Toxic:
        """Milliseconds."""
        return Toxic("reset_peer", {"timeout": round(self.after * 1000)}, direction=self.direction)

    async def expected(self, _targets: tuple[Target, ...], _host: Host, /) -> Mapping[str, Any]:
        """An end without a byte."""
        return {"endings": ["broken"], "most": 0, "after_s": float(self.after)}
