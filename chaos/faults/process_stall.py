"""The process of a target freezes: it lives, its port is open, and nothing moves.

A served model usually has a front process that answers /health and a core that computes. Freezing the core alone is the
failure that health checks do not see.
"""

from __future__ import annotations

import signal as signals
from dataclasses import dataclass
from typing import ClassVar, Literal

from chaos.faults.fault import CannotInject, RevertFailed, Sighting, Undo
from chaos.faults.grips.grip import Grip, family, grips_in, listed_processes
from chaos.faults.grips.sightings import every
from chaos.inventory import Target
from chaos.ports import Host, ProcessId
from chaos.settings import setting

_STOPPED = ("T", "t")


@dataclass(frozen=True)
class ProcessStall:
    """Freezes a target's processes with SIGSTOP."""

    kind: ClassVar[str] = "process_stall"
    summary: ClassVar[str] = "The target's processes freeze: alive, port open, no progress."
    fidelity: ClassVar[str] = "process"
    observer: ClassVar[str] = "/proc shows the state T (stopped) for each frozen process"

    part: Literal["core", "all"] = setting(
        "core is the last process the inventory lists (a model server's engine core); all is every one", default="core"
    )

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target needs a process."""
        return tuple(f"{t.name}: the inventory lists no process to freeze" for t in targets if not t.pids)

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """Note which processes will freeze. Raises CannotInject for a dead or already frozen one.

        A frozen process has no count of who froze it, so two stalls of one process cannot overlap.
        """
        grips = []
        for target in targets:
            listed = await listed_processes(target, host)
            chosen = listed[-1:] if self.part == "core" else family(listed, host.processes)
            _must_run(target.name, chosen, host)
            grips.append(Grip.of(target, chosen))
        return {"targets": [grip.to_json() for grip in grips]}

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """SIGSTOP each. Raises CannotInject when one has gone."""
        del targets
        for grip in grips_in(undo):
            for process in grip.processes:
                if not host.processes.signal(process, signals.SIGSTOP):
                    raise CannotInject(
                        f"{grip.name}: process {process.pid} went away by itself before it could be frozen; "
                        "wait until `brownout status` shows it ready"
                    )

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """Each is in state T."""
        del targets
        return every([_states(grip, host, stopped=True) for grip in grips_in(undo)])

    async def revert(self, undo: Undo, host: Host) -> None:
        """SIGCONT each that still exists. Raises RevertFailed."""
        denied: list[int] = []
        for process in (process for grip in grips_in(undo) for process in grip.processes):
            try:
                host.processes.signal(process, signals.SIGCONT)
            except PermissionError:
                denied.append(process.pid)
        if denied:
            pids = " ".join(map(str, denied))
            raise RevertFailed(f"not allowed to wake process {pids}; by hand: sudo kill -CONT {pids}")

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """None is in state T; one that died meanwhile is not frozen either."""
        del targets
        return every([_states(grip, host, stopped=False) for grip in grips_in(undo)])


def _must_run(name: str, processes: tuple[ProcessId, ...], host: Host) -> None:
    for process in processes:
        if host.processes.state(process) in _STOPPED:
            raise CannotInject(
                f"{name}: process {process.pid} is frozen already, by another fault or by hand; "
                f"end that one first (`brownout recover`, or kill -CONT {process.pid})"
            )


def _states(grip: Grip, host: Host, *, stopped: bool) -> Sighting:
    """Is every process stopped, or is none?"""
    states = [host.processes.state(process) for process in grip.processes]
    seen = all((state in _STOPPED) is stopped for state in states)
    pairs = zip(grip.processes, states, strict=True)
    told = ", ".join(
        f"process {process.pid} {'gone' if state is None else f'in state {state}'}" for process, state in pairs
    )
    return Sighting(seen, f"{grip.name}: {told}")
