"""A GPU node is drained for maintenance: all on it is asked to leave, and nothing starts there until the revert."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.fault import Sighting
from chaos.faults.grips import supervisor
from chaos.faults.grips.grip import Grip
from chaos.faults.grips.sent_away import SentAway
from chaos.faults.process_kill import seen_dead
from chaos.inventory import Target
from chaos.ports import Host
from chaos.settings import setting
from chaos.units import Duration


@dataclass(frozen=True)
class NodeDrain(SentAway):
    """Empties one node in good order."""

    kind: ClassVar[str] = "node_drain"
    summary: ClassVar[str] = "All on one GPU node is asked to leave, and stays away until the revert."
    observer: ClassVar[str] = "/proc no longer has the processes, and connects to each address are refused"

    grace: Duration = setting(
        "how long what runs there may take to leave before it is killed", default=Duration(10), least=0.1, most=600
    )

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """Targets of one node, each with processes and a supervisor."""
        nodes = sorted({t.node for t in targets if t.node})
        found = [f"{t.name}: it lives on no node; choose the target by node" for t in targets if not t.node]
        if len(nodes) > 1:
            found.append(f"the targets live on {len(nodes)} nodes ({', '.join(nodes)}); node_drain takes one at a time")
        found += [f"{t.name}: the inventory lists no process to drain" for t in targets if not t.pids]
        return (*found, *supervisor.without(targets, "keep it away and start it again"))

    async def seen_away(self, grip: Grip, host: Host) -> Sighting:
        """The processes are gone, and the address refuses."""
        return await seen_dead(grip, host, refused=True)
