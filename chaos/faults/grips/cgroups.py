"""Cells: control groups of our own, into which the processes of a target are moved to be limited, and moved back.

A cell is a group beside or below the one that its processes come from, so that every limit from above still holds:

    version 1 (cgroups(7))   below it, in the tree of the one controller
    version 2                below the nearest group above it that hands the controller to its children, as a group with
                             processes of its own can hand out none

The kernel puts children into the group of their parent, so whatever is in a cell at the end belongs where it came from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from chaos.faults.fault import CannotInject, RevertFailed, Undo
from chaos.faults.grips.grip import family
from chaos.ports import Files, Host, ProcessId

Controller = Literal["cpu", "memory"]
_PROCESSES = "cgroup.procs"
_REMOVING_S, _LOOK_EVERY_S = 2.0, 0.01
"""A process that has just been killed holds its group a moment longer."""


@dataclass(frozen=True)
class Hierarchy:
    """Where the kernel shows a controller, in which layout, and whether it takes orders there."""

    mount: Path
    version: Literal[1, 2]
    writable: bool


@dataclass(frozen=True)
class Cell:
    """A folder of ours, and the one its processes come from."""

    path: Path
    origin: Path
    version: int

    def to_json(self) -> dict[str, Any]:
        """As it stands in `undo`."""
        return {"path": str(self.path), "origin": str(self.origin), "version": self.version}


def cells_in(undo: Undo) -> tuple[Cell, ...]:
    """Those that `prepare` stored under `cells`."""
    return tuple(Cell(Path(one["path"]), Path(one["origin"]), one["version"]) for one in undo["cells"])


def usable(controller: Controller, files: Files) -> Hierarchy | str:
    """Where processes can be limited by this controller, or why that is impossible here and how to get it."""
    hierarchy = _hierarchy(controller, files)
    if hierarchy is None:
        return f"the kernel shows no cgroup controller `{controller}`; mount cgroups, or use `by: hog`"
    if not hierarchy.writable:
        return f"{hierarchy.mount} is mounted read-only; run brownout outside the container, or use `by: hog`"
    if not re.search(r"^Uid:\s+\d+\s+0\s", files.read(Path("/proc/self/status")) or "", re.MULTILINE):
        return "control groups belong to root; run brownout as root: sudo -E brownout ..., or use `by: hog`"
    return hierarchy


def cells_for(mark: str, processes: Iterable[ProcessId], controller: Controller, files: Files) -> tuple[Cell, ...]:
    """One for each group that the processes live in. Raises CannotInject when there can be none, or when one of them
    is in a cell already.
    """
    hierarchy = usable(controller, files)
    if isinstance(hierarchy, str):
        raise CannotInject(hierarchy)
    found = (_group_of(process, hierarchy, controller, files) for process in processes)
    origins = tuple(dict.fromkeys(group for group in found if group is not None))
    for origin in origins:
        if origin.name.startswith(f"brownout-{controller}_pressure-"):
            raise CannotInject(
                f"its processes are limited already, by another fault: {origin.name}; end that one first"
            )
    places = [_place(origin, hierarchy, controller, files) / f"{mark}-{n}" for n, origin in enumerate(origins)]
    return tuple(Cell(place, origin, hierarchy.version) for place, origin in zip(places, origins, strict=True))


async def confine(
    cells: Iterable[Cell], knobs: Mapping[str, str], processes: tuple[ProcessId, ...], host: Host
) -> None:
    """Make the cells with these limits and move the processes in, with all their children. Raises CannotInject."""
    try:
        for cell in cells:
            host.files.make_folder(cell.path)
            for name, value in knobs.items():
                _turn(cell.path / name, value, host.files)
            _move(cell.origin, cell.path, {process.pid for process in family(processes, host.processes)}, host.files)
    except OSError as failure:
        raise CannotInject(f"the kernel refused a control group: {failure}") from None


async def release(cells: Iterable[Cell], host: Host) -> None:
    """Move whoever is inside back, and remove the cells. Idempotent. Raises RevertFailed."""
    for cell in cells:
        give_up = host.clock.now() + _REMOVING_S
        while host.files.read(cell.path / _PROCESSES) is not None:
            try:
                _move(cell.path, cell.origin, None, host.files)
            except OSError as failure:
                raise RevertFailed(_by_hand(cell, str(failure))) from None
            if host.files.remove_folder(cell.path):
                break
            if host.clock.now() >= give_up:
                raise RevertFailed(_by_hand(cell, "it is still in use"))
            await host.clock.sleep_until(host.clock.now() + _LOOK_EVERY_S)


def inside(cell: Cell, files: Files) -> tuple[int, ...]:
    """The numbers of the processes in a cell."""
    return tuple(map(int, (files.read(cell.path / _PROCESSES) or "").split()))


def counters(cell: Cell, name: str, files: Files) -> Mapping[str, int]:
    """A file of `name value` lines; a single number has the name "". Empty when the cell is gone."""
    lines = (line.rpartition(" ") for line in (files.read(cell.path / name) or "").splitlines())
    return {key: int(value) for key, _, value in lines if value.isdigit()}


def _turn(knob: Path, value: str, files: Files) -> None:
    """What a kernel is built without (swap) needs no limit."""
    if "sw" in knob.name and files.read(knob) is None:
        return
    files.write_through(knob, value)


def _move(source: Path, target: Path, chosen: set[int] | None, files: Files) -> None:
    """Until nobody of the chosen (None: of all) is left: a process may fork while it is moved. Raises OSError."""
    for _ in range(100):
        pids = [int(word) for word in (files.read(source / _PROCESSES) or "").split()]
        waiting = [pid for pid in pids if chosen is None or pid in chosen]
        if not waiting:
            return
        for pid in waiting:
            try:
                files.write_through(target / _PROCESSES, str(pid))
            except ProcessLookupError:
                continue  # it has ended


def _by_hand(cell: Cell, why: str) -> str:
    return (
        f"control group {cell.path}: {why}; by hand: for p in $(cat {cell.path}/{_PROCESSES}); "
        f"do echo $p > {cell.origin}/{_PROCESSES}; done; rmdir {cell.path}"
    )


def _hierarchy(controller: Controller, files: Files) -> Hierarchy | None:
    """From /proc/self/mountinfo (proc_pid_mountinfo(5)); the older layout is in use where a controller has its own."""
    newer = None
    for line in (files.read(Path("/proc/self/mountinfo")) or "").splitlines():
        before, _, after = line.partition(" - ")
        (_, _, _, _, mount, options), (kind, _, settings) = before.split()[:6], after.split()[:3]
        writable = "rw" in options.split(",")
        if kind == "cgroup" and controller in settings.split(","):
            return Hierarchy(Path(mount), 1, writable)
        if kind == "cgroup2" and controller in _handed_out(Path(mount), files):
            newer = Hierarchy(Path(mount), 2, writable)
    return newer


def _handed_out(group: Path, files: Files) -> list[str]:
    return (files.read(group / "cgroup.subtree_control") or "").split()


def _group_of(process: ProcessId, hierarchy: Hierarchy, controller: Controller, files: Files) -> Path | None:
    """The folder of its group; None when it has ended."""
    for line in (files.read(Path(f"/proc/{process.pid}/cgroup")) or "").splitlines():
        _, controllers, path = line.split(":", 2)
        if (controller in controllers.split(",")) if hierarchy.version == 1 else not controllers:
            return hierarchy.mount / path.lstrip("/")
    return None


def _place(origin: Path, hierarchy: Hierarchy, controller: Controller, files: Files) -> Path:
    """The group in which the cell is made."""
    if hierarchy.version == 1:
        return origin
    above = [group for group in (origin, *origin.parents) if group.is_relative_to(hierarchy.mount)]
    return next(group for group in above if controller in _handed_out(group, files))
