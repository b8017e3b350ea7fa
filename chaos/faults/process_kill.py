"""The process of a target dies, with all that it started.

With `restart: on_revert` the supervisor is asked first to leave the target dead, so the outage lasts exactly as long as
the fault. With `restart: supervisor` whatever watches the process starts it again: the fault is the crash itself.
"""

from __future__ import annotations

import signal as signals
from dataclasses import dataclass
from typing import ClassVar, Literal

from chaos.faults.fault import CannotInject, Sighting, Undo
from chaos.faults.grips import supervisor
from chaos.faults.grips.grip import (
    CONNECT_S,
    Grip,
    alive,
    family,
    grips_in,
    listed_processes,
    numbers,
    part_process,
    without_part,
)
from chaos.faults.grips.marks import new_mark
from chaos.faults.grips.sightings import every_one, seen_back
from chaos.faults.grips.together import all_of
from chaos.inventory import Target
from chaos.ports import Host, Need, ProcessId
from chaos.settings import setting

_NUMBERS = {"KILL": signals.SIGKILL, "TERM": signals.SIGTERM}


@dataclass(frozen=True)
class ProcessKill:
    """Kills a target's processes."""

    kind: ClassVar[str] = "process_kill"
    summary: ClassVar[str] = (
        "The target's processes die; they come back at the revert, or as soon as their supervisor likes."
    )
    fidelity: ClassVar[str] = "process"
    observer: ClassVar[str] = "/proc no longer has the process, and a connect to its own address is refused"
    needs: ClassVar[tuple[Need, ...]] = ()

    signal: Literal["KILL", "TERM"] = setting("KILL is a crash, TERM asks for an orderly exit", default="KILL")
    restart: Literal["on_revert", "supervisor"] = setting(
        "on_revert keeps the target dead while the fault lasts; supervisor lets it be started again at once",
        default="on_revert",
    )

    part: Literal["all", "core", "worker"] = setting(
        "all is every process; core and worker are those of a model server alone, which ends without them",
        default="all",
    )

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target needs a process, and a supervisor that keeps it dead."""
        found = [f"{t.name}: the inventory lists no process to kill" for t in targets if not t.pids]
        if self.restart == "on_revert":
            found += [
                f"{t.name}: nothing could keep it dead and start it again, as it has no supervisor handle; "
                "use `restart: supervisor` or name the supervisor's socket in the inventory"
                for t in targets
                if not t.handles.get("supervisor")
            ]
        return (*found, *without_part(targets, self.part))

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """Note which processes there are. Raises CannotInject for a dead target."""
        grips = [Grip.of(target, await self._chosen(target, host)) for target in targets]
        hold = new_mark(self.kind) if self.restart == "on_revert" else None
        return {"hold": hold, "targets": [grip.to_json() for grip in grips]}

    async def _chosen(self, target: Target, host: Host) -> tuple[ProcessId, ...]:
        if self.part == "all":
            return family(await listed_processes(target, host), host.processes)
        return (await part_process(target, self.part, host),)

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Hold, then kill. Raises CannotInject when the supervisor refuses or the processes have changed."""
        del targets
        grips = grips_in(undo)
        for grip in grips:
            if undo["hold"] and grip.supervisor:
                await supervisor.hold(grip.supervisor, grip.name, undo["hold"], host)
        kill(grips, _NUMBERS[self.signal], host)

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """Every process is gone; while the supervisor is held, the address refuses as well."""
        del targets
        return await every_one(seen_dead(grip, host, refused=bool(undo["hold"])) for grip in grips_in(undo))

    async def revert(self, undo: Undo, host: Host) -> None:
        """Release the hold; the supervisor starts the target at once. Raises RevertFailed."""
        hold = undo["hold"]
        held = [(grip.supervisor, grip.name) for grip in grips_in(undo) if hold and grip.supervisor]
        await all_of(supervisor.release(socket, name, hold, host) for socket, name in held)

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """Every address answers again."""
        del targets
        return await every_one(seen_back(grip, grip.address, undo["hold"], host) for grip in grips_in(undo))


def kill(grips: tuple[Grip, ...], number: int, host: Host) -> None:
    """Signal all processes of all grips in one go, with what they have started since. Raises CannotInject.

    A second pass takes children that were born between the look and the signal.
    """
    for grip in grips:
        if not alive(grip.processes, host.processes):
            raise CannotInject(
                f"{grip.name}: process {numbers(grip.processes)} went away by itself before the fault began; "
                "wait until `brownout status` shows it ready"
            )
    known = [family(grip.processes, host.processes) for grip in grips]
    for processes in known:
        for process in processes:
            host.processes.signal(process, number)
    for processes in known:
        for process in set(family(processes, host.processes)) - set(processes):
            host.processes.signal(process, number)


async def seen_dead(grip: Grip, host: Host, *, refused: bool) -> Sighting:
    """Are its processes gone, and (where `refused` is asked for) is its address closed?"""
    left = alive(grip.processes, host.processes)
    if left:
        return Sighting(seen=False, what=f"{grip.name}: process {numbers(left)} lives")
    gone = f"{grip.name}: process {numbers(grip.processes)} gone from /proc"
    if not refused:
        return Sighting(seen=True, what=gone)
    result = await host.network.connect(grip.address, CONNECT_S)
    return Sighting(result == "refused", f"{gone}, connect to {grip.address} {result}")
