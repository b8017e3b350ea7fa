"""A black hole: connections to the target are accepted and stay, and no byte passes any more in one direction."""

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
class NetTimeout(EndedTalk):
    """Swallows bytes on the fault proxy's listener before a target. Connections that it held end at the revert."""

    kind: ClassVar[str] = "net_timeout"
    summary: ClassVar[str] = "Bytes to or from the target vanish on connections that stay open: a black hole."
    fidelity: ClassVar[str] = "network"
    observer: ClassVar[str] = "the observer's own talk through the edge is accepted and never answered, a direct one is"

    close_after: Duration | None = setting(
        "a connection closes after so long without a byte; default never", default=None, least=0.001, most=3600
    )
    direction: Direction = which_way()
    from_: str | None = by_caller()

    def toxic(self) -> Toxic:
        """0 never closes."""
        close_ms = round((self.close_after or 0) * 1000)
        return Toxic("timeout", {"timeout": close_ms}, direction=self.direction)

    async def expected(self, _targets: tuple[Target, ...], _host: Host, /) -> Mapping[str, Any]:
        """Silence, and then perhaps the end, without a byte."""
        return {"endings": ["silent"] if self.close_after is None else ["silent", "broken"], "most": 0}
