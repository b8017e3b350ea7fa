"""A target has little memory left: the kernel takes its page cache, makes it wait, and in the end kills it.

What it holds already stays its own; the room is for what it wants from now on. A limit on what it holds in all would
need a count of pages that the kernel does not move with a process.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from chaos.faults.fault import CannotInject, Sighting, Undo
from chaos.faults.grips.cgroups import Cell, Controller, counters
from chaos.faults.grips.consumption import meminfo, resident
from chaos.faults.grips.pressure import PressureFault, Way, chosen_way
from chaos.ports import Host
from chaos.settings import setting
from chaos.units import Ratio, Size

_LEAST_RESERVE = 512 << 20
_RESERVED = 0.1
"""Of all memory: a hog never drives strangers into the arms of the kernel's killer."""
_ALMOST = 0.95
_BATCH = 64 * 4096
"""The kernel counts in batches (its memcontrol.h, MEMCG_CHARGE_BATCH); not every kernel counts the failures."""


@dataclass(frozen=True)
class MemoryPressure(PressureFault):
    """Takes memory from a target."""

    kind: ClassVar[str] = "memory_pressure"
    program: ClassVar[str] = "memory"
    controller: ClassVar[Controller] = "memory"
    summary: ClassVar[str] = (
        "The target gets hardly more memory, and is killed when it insists; or a hog takes a share of the free memory."
    )
    fidelity: ClassVar[str] = "process (cgroup: the target's own processes; hog: everybody on the machine)"
    observer: ClassVar[str] = (
        "the kernel counts how often the target's processes met their limit; for a hog, the memory that it holds"
    )

    room: Size = setting(
        "what the target's processes together may take beside what they hold", default=Size(16 << 20), least=1 << 20
    )
    share: Ratio = setting("what a hog takes of the free memory, less a reserve", default=Ratio(0.8), most=0.95)
    by: Way = chosen_way()

    def knobs(self, version: int) -> Mapping[str, str]:
        """The limit, which swap does not help to pass."""
        room = str(int(self.room))
        if version == 2:
            return {"memory.max": room, "memory.swap.max": "0"}
        return {"memory.limit_in_bytes": room, "memory.memsw.limit_in_bytes": room}

    async def shares(self, host: Host) -> Mapping[str, Any]:
        """How much memory is free now. Raises CannotInject."""
        total, free = (meminfo(name, host.files) for name in ("MemTotal", "MemAvailable"))
        reserve = max(_LEAST_RESERVE, round(total * _RESERVED))
        if free <= reserve:
            raise CannotInject(
                f"memory_pressure: only {free >> 20} MiB of memory are free, and a reserve of {reserve >> 20} MiB is "
                "never taken; make room first"
            )
        return {"bytes": round((free - reserve) * float(self.share)), "reserve": reserve}

    def orders(self, undo: Undo) -> Mapping[str, Any]:
        """How much, and how much is left to others."""
        return {"bytes": undo["bytes"], "reserve": undo["reserve"]}

    async def seen_limited(self, cell: Cell, host: Host) -> Sighting:
        """It met the limit at least once."""
        if cell.version == 2:
            events = counters(cell, "memory.events", host.files)
            met, killed = events.get("max", 0) > 0, events.get("oom_kill", 0)
        else:
            most = counters(cell, "memory.max_usage_in_bytes", host.files).get("", 0)
            limit = counters(cell, "memory.limit_in_bytes", host.files).get("", 0)
            met, killed = most + _BATCH >= limit, counters(cell, "memory.oom_control", host.files).get("oom_kill", 0)
        told = f"has {'' if met else 'not '}met its limit; {killed} of its processes were killed for memory"
        return Sighting(met, f"{cell.path.name} {told}")

    async def seen_crowded(self, undo: Undo, host: Host) -> Sighting:
        """What the saboteur holds, by the kernel's account."""
        held, free = resident(undo["warrant"], host), meminfo("MemAvailable", host.files)
        told = f"the hog holds {held >> 20} of {undo['bytes'] >> 20} MiB; {free >> 20} MiB are free"
        return Sighting(held >= _ALMOST * undo["bytes"], told)
