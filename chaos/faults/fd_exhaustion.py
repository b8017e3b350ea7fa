"""A target has run out of file descriptors: it can open no file, make no connection, take none.

Usually a leak has eaten them. What is open stays open and goes on working, so that a process in this state looks alive
from inside: it lives, its port takes connections (the kernel does), and nobody new is ever answered.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from chaos.faults.fault import CannotInject, RevertFailed, Sighting, Undo
from chaos.faults.grips.grip import ANSWER_S, Grip, alive, family, grips_in, listed_processes
from chaos.faults.grips.needs import tool
from chaos.faults.grips.sightings import every, every_one
from chaos.inventory import Target
from chaos.ports import Files, Host, Need, ProcessId

_STREAMS = 3
"""Numbers below are the standard streams, the only ones that no server closes: any other may come free and would be
taken again. Not lower, as poll(2) refuses to look at more descriptors than a process may have.
"""


@dataclass(frozen=True)
class FdExhaustion:
    """Lowers RLIMIT_NOFILE of a target's processes below what they have open."""

    kind: ClassVar[str] = "fd_exhaustion"
    summary: ClassVar[str] = (
        "The target has no file descriptor left: what is open goes on, new files and connections fail with EMFILE."
    )
    fidelity: ClassVar[str] = "process"
    observer: ClassVar[str] = (
        "/proc shows that no number below the target's limit is free, and a new connection to it is never answered"
    )
    needs: ClassVar[tuple[Need, ...]] = (tool("prlimit", "util-linux"),)

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target needs a process."""
        return tuple(f"{t.name}: the inventory lists no process to limit" for t in targets if not t.pids)

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """Note the limit of each process. Raises CannotInject for a dead target and for one that is full already."""
        grips: list[Grip] = []
        before: dict[str, int] = {}
        for target in targets:
            roots = await listed_processes(target, host)
            grip = Grip.of(target, family(roots, host.processes))
            limits = {process.pid: _soft_limit(process, host.files) for process in grip.processes}
            if full := [pid for pid, limit in limits.items() if limit is not None and limit <= _STREAMS]:
                raise CannotInject(
                    f"{target.name}: process {full[0]} may have {limits[full[0]]} files open and no more, by another "
                    "fault or by hand; end that one first (`brownout recover`, or prlimit)"
                )
            before |= {str(pid): limit for pid, limit in limits.items() if limit is not None}
            grips.append(grip)
        return {"targets": [grip.to_json() for grip in grips], "before": before}

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Limit each process, parents first, and those born meanwhile. Raises CannotInject."""
        del targets
        for grip in grips_in(undo):
            for process in family(grip.processes, host.processes):
                why = await _set(process, _full_at(process, host.files), host)
                if why and host.processes.state(process) is not None:
                    raise CannotInject(f"{grip.name}: its limit could not be lowered: {why}; run brownout as its user")

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """Each target is full and answers nobody."""
        del targets
        return await every_one(_starved(grip, host) for grip in grips_in(undo))

    async def revert(self, undo: Undo, host: Host) -> None:
        """Give each process its limit back, and the children that have inherited ours. Raises RevertFailed."""
        failed = [why for grip in grips_in(undo) for why in await _given_back(grip, undo["before"], host)]
        if failed:
            raise RevertFailed("; ".join(failed))

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """None of the processes is full, and each target answers."""
        del targets
        return every([await _served(grip, host) for grip in grips_in(undo)])


def _soft_limit(process: ProcessId, files: Files) -> int | None:
    """Of open files; None when the process is gone (proc_pid_limits(5))."""
    found = re.search(r"^Max open files +(\d+)", files.read(Path(f"/proc/{process.pid}/limits")) or "", re.MULTILINE)
    return int(found[1]) if found else None


def _full_at(process: ProcessId, files: Files) -> int:
    """The greatest limit below which every number is taken for good."""
    held = set(files.names(Path(f"/proc/{process.pid}/fdinfo")))
    return next((number for number in range(_STREAMS) if str(number) not in held), _STREAMS)


async def _set(process: ProcessId, soft: int, host: Host) -> str:
    """The soft limit alone, as whoever set it may then raise it again; what went wrong, or nothing."""
    ran = await host.programs.run(["prlimit", "--pid", str(process.pid), f"--nofile={soft}:"])
    return "" if ran.status == 0 else ran.errors.strip()


async def _given_back(grip: Grip, before: Mapping[str, Any], host: Host) -> list[str]:
    """What went wrong. A process that has its limit is left alone: we may not have been allowed to lower it either."""
    failed = []
    for process in family(alive(grip.processes, host.processes), host.processes):
        soft = before.get(str(process.pid), before[str(grip.processes[0].pid)])
        if _soft_limit(process, host.files) == soft:
            continue
        why = await _set(process, soft, host)
        if why and host.processes.state(process) is not None:
            failed.append(f"{grip.name}: {why}; by hand: sudo prlimit --pid {process.pid} --nofile={soft}:")
    return failed


def _told(process: ProcessId, host: Host) -> tuple[bool, str]:
    """Whether it can open nothing more, and what /proc says."""
    limit, held = _soft_limit(process, host.files), host.files.names(Path(f"/proc/{process.pid}/fdinfo"))
    if limit is None:
        return False, f"process {process.pid} is gone"
    return limit <= _full_at(process, host.files), f"process {process.pid} has {len(held)} of {limit} files open"


async def _starved(grip: Grip, host: Host) -> Sighting:
    full, what = _told(grip.processes[0], host)
    if not full:
        return Sighting(seen=False, what=f"{grip.name}: {what}")
    answered = await host.network.round_trip(grip.address, grip.wire, ANSWER_S) is not None
    return Sighting(not answered, f"{grip.name}: {what}; a new connection {'was' if answered else 'is not'} answered")


async def _served(grip: Grip, host: Host) -> Sighting:
    told = [_told(process, host) for process in alive(grip.processes, host.processes)]
    if full := [what for is_full, what in told if is_full]:
        return Sighting(seen=False, what=f"{grip.name}: {full[0]}")
    answers = await host.network.round_trip(grip.address, grip.wire, ANSWER_S) is not None
    return Sighting(answers, f"{grip.name}: a new connection is {'' if answers else 'not '}answered")
