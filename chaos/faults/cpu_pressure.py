"""A target gets little of the processor: a noisy neighbour, a limit set too low, a node that is overbooked."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips.cgroups import Cell, Controller, counters
from chaos.faults.grips.grip import family
from chaos.faults.grips.pressure import PressureFault, Way, chosen_way
from chaos.ports import Host
from chaos.settings import setting
from chaos.units import Ratio

_PERIOD_US, _LEAST_QUOTA_US = 10_000, 1_000
"""Short periods slow a target down evenly; the kernel grants no less than a millisecond (its cgroup-v2.rst)."""
_LOOK_S = 0.25
_ENOUGH = 0.3
"""Of what it shall burn: a hog shares the cores with those whom it hinders."""
_TICKS_PER_S = 100
"""USER_HZ, which is the unit of /proc on every architecture in use (proc_pid_stat(5))."""


@dataclass(frozen=True)
class CpuPressure(PressureFault):
    """Takes processor time from a target."""

    kind: ClassVar[str] = "cpu_pressure"
    program: ClassVar[str] = "cpu"
    controller: ClassVar[Controller] = "cpu"
    summary: ClassVar[str] = (
        "The target gets little processor time: its share is cut, or a hog takes it from everybody."
    )
    fidelity: ClassVar[str] = "process (cgroup: the target's own processes; hog: everybody on the machine)"
    observer: ClassVar[str] = (
        "the kernel counts periods in which it held the target's processes back (nr_throttled); for a hog, the "
        "processor time that it got"
    )

    share: Ratio = setting(
        "what is taken: the target's processes together keep the rest of one core; a hog wants so much of every core",
        default=Ratio(0.8),
        most=0.99,
    )
    by: Way = chosen_way()

    def knobs(self, version: int) -> Mapping[str, str]:
        """A quota of run time in each period."""
        left = max(1 - float(self.share), 0.01)
        period_us = max(_PERIOD_US, math.ceil(_LEAST_QUOTA_US / left))
        quota_us = max(_LEAST_QUOTA_US, round(period_us * left))
        if version == 2:
            return {"cpu.max": f"{quota_us} {period_us}"}
        return {"cpu.cfs_period_us": str(period_us), "cpu.cfs_quota_us": str(quota_us)}

    async def shares(self, host: Host) -> Mapping[str, Any]:
        """How many cores there are."""
        stat = host.files.read(Path("/proc/stat")) or ""
        return {"cores": max(1, len(re.findall(r"^cpu\d+ ", stat, re.MULTILINE))), "share": float(self.share)}

    def orders(self, undo: Undo) -> Mapping[str, Any]:
        """A share of each core."""
        return {"cores": undo["cores"], "share": undo["share"]}

    async def seen_limited(self, cell: Cell, host: Host) -> Sighting:
        """Held back again between two looks."""
        before = counters(cell, "cpu.stat", host.files).get("nr_throttled", 0)
        await host.clock.sleep_until(host.clock.now() + _LOOK_S)
        more = counters(cell, "cpu.stat", host.files).get("nr_throttled", 0) - before
        return Sighting(more > 0, f"{cell.path.name}: held back in {more} periods within {_LOOK_S:g}s")

    async def seen_crowded(self, undo: Undo, host: Host) -> Sighting:
        """Run time of the hog's processes between two looks."""
        before, began = _run_time_s(undo, host), host.clock.now()
        await host.clock.sleep_until(began + _LOOK_S)
        cores = (_run_time_s(undo, host) - before) / max(host.clock.now() - began, 1e-9)
        wanted = undo["cores"] * undo["share"]
        return Sighting(
            cores >= _ENOUGH * wanted, f"the hog runs on {cores:.2f} cores of the {wanted:.2f} that it wants"
        )


def _run_time_s(undo: Undo, host: Host) -> float:
    """utime and stime of whoever acts on the warrant (proc_pid_stat(5), fields 14 and 15)."""
    ticks = 0
    for process in family(host.processes.with_argument(undo["warrant"]), host.processes):
        stat = host.files.read(Path(f"/proc/{process.pid}/stat"))
        if stat:
            ticks += sum(map(int, stat.rpartition(")")[2].split()[11:13]))
    return ticks / _TICKS_PER_S
