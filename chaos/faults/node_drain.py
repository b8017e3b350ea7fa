"""A GPU node is drained for maintenance: all on it is asked to leave, and nothing starts there until the revert."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips import supervisor
from chaos.faults.grips.grip import Grip, family, grips_in, listed_processes
from chaos.faults.grips.leaving import leave
from chaos.faults.grips.marks import new_mark
from chaos.faults.grips.sightings import every_one, seen_back
from chaos.faults.grips.together import all_of
from chaos.faults.process_kill import seen_dead
from chaos.inventory import Target
from chaos.ports import Host
from chaos.settings import setting
from chaos.units import Duration


@dataclass(frozen=True)
class NodeDrain:
    """Empties one node in good order."""

    kind: ClassVar[str] = "node_drain"
    summary: ClassVar[str] = "All on one GPU node is asked to leave, and stays away until the revert."
    fidelity: ClassVar[str] = "process"
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

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """Note all processes of the node. Raises CannotInject for a dead target."""
        grips = [Grip.of(target, family(await listed_processes(target, host), host.processes)) for target in targets]
        return {"hold": new_mark(self.kind), "targets": [grip.to_json() for grip in grips]}

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Hold everything, then ask it to leave, all at the same time. Raises CannotInject."""
        del targets
        await supervisor.hold_all(grips_in(undo), undo["hold"], host)
        await leave(grips_in(undo), float(self.grace), host)

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """All processes are gone, and each address refuses."""
        del targets
        return await every_one(seen_dead(grip, host, refused=True) for grip in grips_in(undo))

    async def revert(self, undo: Undo, host: Host) -> None:
        """Release everything; the supervisor starts it at once. Raises RevertFailed."""
        await all_of(supervisor.releases(grips_in(undo), undo["hold"], host))

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """Each target answers again."""
        del targets
        return await every_one(seen_back(grip, grip.address, undo["hold"], host) for grip in grips_in(undo))
