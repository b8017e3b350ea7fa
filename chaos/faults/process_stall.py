"""The process of a target freezes: it lives, its port is open, and nothing moves.

A served model usually has a front process that answers /health and a core that computes. Freezing the core alone is the
failure that health checks do not see.
"""

from __future__ import annotations

import signal as signals
from dataclasses import dataclass
from typing import ClassVar, Literal

from chaos.faults.fault import CannotInject, RevertFailed, Sighting, Undo
from chaos.faults.grips.grip import Grip, alive, family, grips_in, listed_processes, part_process, without_part
from chaos.faults.grips.sightings import every
from chaos.inventory import Target
from chaos.ports import Host, Need, ProcessId
from chaos.settings import setting

_STOPPED = ("T", "t")
_STOPPING_S = 0.1
"""Longest wait for a stopped process to be seen as one."""


@dataclass(frozen=True)
class ProcessStall:
    """Freezes a target's processes with SIGSTOP."""

    kind: ClassVar[str] = "process_stall"
    summary: ClassVar[str] = "The target's processes freeze: alive, port open, no progress."
    fidelity: ClassVar[str] = "process"
    observer: ClassVar[str] = "/proc shows the state T (stopped) for each frozen process"
    needs: ClassVar[tuple[Need, ...]] = ()

    part: Literal["core", "worker", "all"] = setting(
        "core is a model server's engine core (the last process where the inventory names none), worker the one that "
        "computes for it; all is every one",
        default="core",
    )

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target needs a process."""
        dead = (f"{t.name}: the inventory lists no process to freeze" for t in targets if not t.pids)
        return (*dead, *without_part(targets, self.part))

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """Note which processes will freeze. Raises CannotInject for a dead or already frozen one.

        A frozen process has no count of who froze it, so two stalls of one process cannot overlap.
        """
        grips, listed_counts = [], []
        for target in targets:
            if self.part == "all":
                roots = await listed_processes(target, host)
                chosen = family(roots, host.processes)
            else:
                roots = chosen = (await part_process(target, self.part, host),)
            _must_run(target.name, chosen, host)
            grips.append(Grip.of(target, chosen))
            listed_counts.append(len(roots))
        return {"part": self.part, "listed": listed_counts, "targets": [grip.to_json() for grip in grips]}

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """SIGSTOP each, parents first, with those that were born since. Raises CannotInject when a listed one has gone.

        Others may come and go: a database has one for every client.
        """
        del targets
        for grip, listed in _grips_with_listed(undo):
            for process in grip.processes:
                if not host.processes.signal(process, signals.SIGSTOP) and process in listed:
                    raise CannotInject(
                        f"{grip.name}: process {process.pid} went away by itself before it could be frozen; "
                        "wait until `brownout status` shows it ready"
                    )
        if undo["part"] == "all":
            await _freeze_newborn(undo, host)

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """Each that is left is in state T, and all that are listed are left."""
        del targets
        return every([_frozen(grip, listed, host) for grip, listed in _grips_with_listed(undo)])

    async def revert(self, undo: Undo, host: Host) -> None:
        """SIGCONT each that still exists. Raises RevertFailed."""
        denied: list[int] = []
        frozen = [(*grip.processes, *_newborn(grip, undo, host)) for grip in grips_in(undo)]
        for process in (process for processes in frozen for process in processes):
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
        return every([_awake(grip, host) for grip in grips_in(undo)])


def _grips_with_listed(undo: Undo) -> list[tuple[Grip, tuple[ProcessId, ...]]]:
    """Each grip with those of its processes that the inventory lists; they stand first."""
    return [(grip, grip.processes[:count]) for grip, count in zip(grips_in(undo), undo["listed"], strict=True)]


async def _freeze_newborn(undo: Undo, host: Host) -> None:
    """A signal takes a moment to act, and a parent may still fork in it."""
    give_up = host.clock.now() + _STOPPING_S
    while not all(_frozen(grip, listed, host).seen for grip, listed in _grips_with_listed(undo)):
        if host.clock.now() >= give_up:
            break
        await host.clock.sleep_until(host.clock.now() + 0.001)
    for grip in grips_in(undo):
        for newborn in _newborn(grip, undo, host):
            host.processes.signal(newborn, signals.SIGSTOP)


def _newborn(grip: Grip, undo: Undo, host: Host) -> list[ProcessId]:
    """Children that were started after `prepare` looked; a frozen parent has no more of them."""
    if undo["part"] != "all":
        return []
    return [process for process in family(grip.processes, host.processes) if process not in grip.processes]


def _must_run(name: str, processes: tuple[ProcessId, ...], host: Host) -> None:
    for process in processes:
        if host.processes.state(process) in _STOPPED:
            raise CannotInject(
                f"{name}: process {process.pid} is frozen already, by another fault or by hand; "
                f"end that one first (`brownout recover`, or kill -CONT {process.pid})"
            )


def _frozen(grip: Grip, listed: tuple[ProcessId, ...], host: Host) -> Sighting:
    left = alive(grip.processes, host.processes)
    seen = set(listed) <= set(left) and all(host.processes.state(process) in _STOPPED for process in left)
    return Sighting(seen, _told(grip, host))


def _awake(grip: Grip, host: Host) -> Sighting:
    seen = all(host.processes.state(process) not in _STOPPED for process in grip.processes)
    return Sighting(seen, _told(grip, host))


def _told(grip: Grip, host: Host) -> str:
    states = [host.processes.state(process) for process in grip.processes]
    pairs = zip(grip.processes, states, strict=True)
    told = ", ".join(
        f"process {process.pid} {'gone' if state is None else f'in state {state}'}" for process, state in pairs
    )
    return f"{grip.name}: {told}"
