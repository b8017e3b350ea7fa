"""A target gets little of the processor: a noisy neighbour, a limit set too low, a node that is overbooked."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips import consumption
from chaos.faults.grips.cgroups import Cell, Controller, counters
from chaos.faults.grips.pressure import PressureFault, Way, chosen_way
from chaos.ports import Host
from chaos.settings import setting
from chaos.units import Ratio

_PERIOD_US, _LEAST_QUOTA_US = 10_000, 1_000
"""Short periods slow a target down evenly; the kernel grants no less than a millisecond (its cgroup-v2.rst)."""
_LOOK_S = 0.25
_ENOUGH = 0.3
"""Of what it shall burn: a hog shares the cores with those whom it hinders."""


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
        return {"cores": consumption.cores(host.files), "share": float(self.share)}

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
        cores = await consumption.cores_used(undo["warrant"], _LOOK_S, host)
        wanted = undo["cores"] * undo["share"]
        return Sighting(
            cores >= _ENOUGH * wanted, f"the hog runs on {cores:.2f} cores of the {wanted:.2f} that it wants"
        )
