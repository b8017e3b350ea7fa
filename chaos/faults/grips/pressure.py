"""Faults that take a resource of the machine from a target, by one of two ways. All their verbs stand here.

    cgroup   the target's own processes are limited by the kernel: exactly they, and nobody else
    hog      a saboteur uses the resource up: everybody on the machine feels it

A fault says which limit it sets (`knobs`) or what the hog shall take (`orders`), and how each of both shows.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips import cgroups
from chaos.faults.grips.cgroups import Cell, Controller, cells_in, usable
from chaos.faults.grips.grip import ANSWER_S, Grip, family, grips_in, listed_processes
from chaos.faults.grips.saboteur import SaboteurFault
from chaos.faults.grips.sightings import every_one
from chaos.inventory import Target
from chaos.ports import Host, ProcessId
from chaos.settings import setting

Way = Literal["auto", "cgroup", "hog"]


def chosen_way() -> Any:
    """The setting `by`."""
    return setting(
        "cgroup limits the target's processes alone (for root, where the kernel has the cgroup controller); hog is a "
        "process that uses it up for everybody on the machine; auto is cgroup where that is possible",
        default="auto",
    )


class PressureFault(SaboteurFault):
    """Base of the faults; they are frozen dataclasses of settings, one of them `by`."""

    controller: ClassVar[Controller]
    by: Way

    @abstractmethod
    def knobs(self, version: int) -> Mapping[str, str]:
        """The limit: control files of a cell and what is written into them, in order."""

    @abstractmethod
    async def seen_limited(self, cell: Cell, host: Host) -> Sighting:
        """Does the kernel tell that it has held the processes of this cell back? Works on a bare fault."""

    @abstractmethod
    async def seen_crowded(self, undo: Undo, host: Host) -> Sighting:
        """Does the kernel tell that the saboteur has what it shall take? Works on a bare fault."""

    @abstractmethod
    async def shares(self, host: Host) -> Mapping[str, Any]:
        """What orders and observer of the hog must know. Raises CannotInject."""

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """Whoever is limited needs a process; a hog harms without."""
        if self.by == "hog":
            return ()
        return tuple(f"{t.name}: the inventory lists no process to limit" for t in targets if not t.pids)

    async def expected(self, targets: tuple[Target, ...], host: Host) -> Mapping[str, Any]:
        """The targets' processes as they are now, and which way it is. Raises CannotInject."""
        grips = [Grip.of(t, family(await listed_processes(t, host), host.processes) if t.pids else ()) for t in targets]
        hog = self.by == "hog" or (self.by == "auto" and isinstance(usable(self.controller, host.files), str))
        return {
            "way": "hog" if hog else "cgroup",
            "targets": [grip.to_json() for grip in grips],
            **(await self.shares(host) if hog else {}),
        }

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """Choose the way, and name the cells. Raises CannotInject."""
        undo = dict(await super().prepare(targets, host))
        made = () if undo["way"] == "hog" else self._cells(undo, host)
        return {**undo, "cells": [cell.to_json() for cell in made]}

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Limit the processes, or start the hog. Raises CannotInject."""
        if undo["way"] == "hog":
            await super().inject(targets, undo, host)
        elif cells := cells_in(undo):
            await cgroups.confine(cells, self.knobs(cells[0].version), _processes(undo), host)

    async def revert(self, undo: Undo, host: Host) -> None:
        """Give the processes back, or end the hog. Raises RevertFailed."""
        await cgroups.release(cells_in(undo), host)
        await super().revert(undo, host)

    async def seen_harmed(self, undo: Undo, host: Host) -> Sighting:
        """By the kernel's own account."""
        if undo["way"] == "hog":
            return await self.seen_crowded(undo, host)
        # To be held back, a process must want something.
        await every_one(_answering(grip, host) for grip in grips_in(undo))
        return await every_one(self._limited(cell, host) for cell in cells_in(undo))

    async def seen_well(self, undo: Undo, host: Host) -> Sighting:
        """No cell of ours is left, no hog, and each target answers."""
        left = [cell for cell in cells_in(undo) if host.files.read(cell.path / "cgroup.procs") is not None]
        if left:
            return Sighting(seen=False, what=f"control group {left[0].path} is still there")
        answers = await every_one(_answering(grip, host) for grip in grips_in(undo))
        return answers if undo["targets"] else Sighting(seen=True, what="the hog is gone")

    async def _limited(self, cell: Cell, host: Host) -> Sighting:
        if host.files.read(cell.path / "cgroup.procs") is None:
            return Sighting(seen=False, what=f"there is no control group {cell.path.name}")
        return await self.seen_limited(cell, host)

    def _cells(self, undo: Undo, host: Host) -> tuple[Cell, ...]:
        return cgroups.cells_for(undo["mark"], _processes(undo), self.controller, host.files)


def _processes(undo: Undo) -> tuple[ProcessId, ...]:
    return tuple(process for grip in grips_in(undo) for process in grip.processes)


async def _answering(grip: Grip, host: Host) -> Sighting:
    answers = await host.network.round_trip(grip.address, grip.wire, ANSWER_S) is not None
    return Sighting(answers, f"{grip.name}: {grip.address} {'answers' if answers else 'does not answer'}")
