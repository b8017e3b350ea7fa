"""A target dies and takes long to come back, as one that loads its model anew: each start waits till the revert."""

from __future__ import annotations

import signal as signals
from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips import supervisor
from chaos.faults.grips.grip import CONNECT_S, Grip, family, grips_in, listed_processes
from chaos.faults.grips.leaving import successor
from chaos.faults.grips.marks import new_mark
from chaos.faults.grips.sightings import every_one, seen_back
from chaos.faults.grips.together import all_of
from chaos.faults.process_kill import kill, seen_dead
from chaos.inventory import Target
from chaos.ports import Host, Need
from chaos.settings import setting
from chaos.units import Duration


@dataclass(frozen=True)
class ProcessSlowStart:
    """Kills a target's processes and delays their return."""

    kind: ClassVar[str] = "process_slow_start"
    summary: ClassVar[str] = "The target dies, and every start of it takes longer until the revert."
    fidelity: ClassVar[str] = "process"
    observer: ClassVar[str] = (
        "/proc no longer has the process, and its address refuses until another process is in its place"
    )
    needs: ClassVar[tuple[Need, ...]] = ()

    delay: Duration = setting("how much longer a start takes", default=Duration(5), least=0.5, most=3600)

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target needs a process, and a supervisor that starts it later."""
        lifeless = (f"{t.name}: the inventory lists no process to kill" for t in targets if not t.pids)
        return (*lifeless, *supervisor.without(targets, "start it again, and later"))

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """Note which processes there are. Raises CannotInject for a dead target."""
        grips = [Grip.of(target, family(await listed_processes(target, host), host.processes)) for target in targets]
        return {"mark": new_mark(self.kind), "targets": [grip.to_json() for grip in grips]}

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Lay the burden, then kill what runs. Raises CannotInject."""
        del targets
        for grip in grips_in(undo):
            if grip.supervisor:
                burden = {"start_delay_s": float(self.delay)}
                await supervisor.lay(grip.supervisor, grip.name, undo["mark"], burden, host)
        kill(grips_in(undo), signals.SIGKILL, host)

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """Every process is gone, and its address refuses until there is another."""
        del targets
        return await every_one(_seen_late(grip, host) for grip in grips_in(undo))

    async def revert(self, undo: Undo, host: Host) -> None:
        """Take the burden away; the supervisor starts what it kept waiting. Raises RevertFailed."""
        await all_of(supervisor.releases(grips_in(undo), undo["mark"], host))

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """Every address answers again."""
        del targets
        return await every_one(seen_back(grip, grip.address, undo["mark"], host) for grip in grips_in(undo))


async def _seen_late(grip: Grip, host: Host) -> Sighting:
    dead = await seen_dead(grip, host, refused=False)
    if not dead.seen:
        return dead
    result = await host.network.connect(grip.address, CONNECT_S)
    record = await supervisor.look(grip.supervisor, grip.name, host) if grip.supervisor else None
    back = successor(grip, tuple(record["pids"]) if record else (), host)
    told = f"connect to {grip.address} {result}" + (", another process is in its place by now" if back else "")
    return Sighting(back or result == "refused", f"{dead.what}, {told}")
