"""A GPU node is gone: every process on it dies at once, and nothing there accepts a connection until the revert."""

from __future__ import annotations

import signal as signals
from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips import supervisor
from chaos.faults.grips.grip import CONNECT_S, Grip, family, grips_in, listed_processes, without_proxy
from chaos.faults.grips.marks import new_mark
from chaos.faults.grips.sightings import every_one, seen_back
from chaos.faults.grips.together import all_of
from chaos.faults.process_kill import kill, seen_dead
from chaos.inventory import Target
from chaos.ports import Host, Need


@dataclass(frozen=True)
class NodeLoss:
    """Kills and cuts off everything that lives on one node."""

    kind: ClassVar[str] = "node_loss"
    summary: ClassVar[str] = "Every process of one GPU node dies and the node refuses connections until the revert."
    fidelity: ClassVar[str] = "process and network"
    observer: ClassVar[str] = "/proc no longer has the processes; connects to each address, direct and via, are refused"
    needs: ClassVar[tuple[Need, ...]] = ()

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """Targets of one node, each with processes, a supervisor and a proxy."""
        nodes = sorted({t.node for t in targets if t.node})
        found = [f"{t.name}: it lives on no node; choose the target by node" for t in targets if not t.node]
        if len(nodes) > 1:
            found.append(f"the targets live on {len(nodes)} nodes ({', '.join(nodes)}); node_loss takes one at a time")
        found += [f"{t.name}: the inventory lists no process to kill" for t in targets if not t.pids]
        found += [
            f"{t.name}: nothing could keep it dead and start it again, as it has no supervisor handle; "
            "name the supervisor's socket in the inventory"
            for t in targets
            if not t.handles.get("supervisor")
        ]
        return (*found, *without_proxy(targets))

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """Note all processes of the node. Raises CannotInject for a dead target or a proxy closed by hand."""
        grips = []
        for target in targets:
            grip = Grip.of(target, family(await listed_processes(target, host), host.processes))
            if grip.proxy:
                await grip.proxy.must_be_up(host)
            grips.append(grip)
        return {"hold": new_mark(self.kind), "targets": [grip.to_json() for grip in grips]}

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Hold everything, close its edges, then kill in one go. Raises CannotInject."""
        del targets
        grips, mark = grips_in(undo), undo["hold"]
        for grip in grips:
            if grip.supervisor:
                await supervisor.hold(grip.supervisor, grip.name, mark, host)
        for grip in grips:
            if grip.proxy:
                await grip.proxy.take_down(mark, host)
        kill(grips, signals.SIGKILL, host)

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """All processes are gone, and each address refuses, direct and through the proxy."""
        del targets
        return await every_one(_seen_lost(grip, host) for grip in grips_in(undo))

    async def revert(self, undo: Undo, host: Host) -> None:
        """Release everything and open its edges; one failure leaves the rest reverted. Raises RevertFailed."""
        grips, mark = grips_in(undo), undo["hold"]
        releases = [supervisor.release(g.supervisor, g.name, mark, host) for g in grips if g.supervisor]
        openings = [grip.proxy.bring_up(mark, host) for grip in grips if grip.proxy]
        await all_of([*releases, *openings])

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """Each target answers through its proxy."""
        del targets
        return await every_one(seen_back(grip, grip.via or grip.address, undo["hold"], host) for grip in grips_in(undo))


async def _seen_lost(grip: Grip, host: Host) -> Sighting:
    dead = await seen_dead(grip, host, refused=True)
    if not dead.seen or not grip.via:
        return dead
    via = await host.network.connect(grip.via, CONNECT_S)
    return Sighting(via == "refused", f"{dead.what}, via {grip.via} {via}")
