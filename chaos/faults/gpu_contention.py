"""Another process computes on the GPU under a target: each step waits for its turn, and nothing says why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips import devices
from chaos.faults.grips.devices import Answers, Device
from chaos.faults.grips.gpu_fault import known
from chaos.faults.grips.hog import SIMULATED_TENANT, HogFault, Resource
from chaos.ports import Host
from chaos.settings import setting
from chaos.units import Ratio

_ALMOST = 0.99
_TURNS = 0.3
"""Of what it wants: on a real GPU who is hindered has turns too."""
_SHOWS = 1 / 3
"""Part of the expected delay that proves it: a busy engine spends some of its time elsewhere than on the GPU."""


@dataclass(frozen=True)
class GpuContention(HogFault):
    """Computes on a target's GPU."""

    kind: ClassVar[str] = "gpu_contention"
    summary: ClassVar[str] = "Another process computes on the target's GPU and takes a share of its time."
    observer: ClassVar[str] = (
        "NVML lists another process that keeps this share of the SMs busy, and the observer's own completion is slower"
    )

    resource: ClassVar[Resource] = "time"

    share: Ratio = setting(
        "share of the GPU's time that is taken; on a real one that is busy the driver lets both take turns, so that it "
        "is half at most",
        default=Ratio(0.5),
        least=0.01,
        most=0.99,
    )

    def condition(self) -> Mapping[str, Any]:
        """Another process that takes a share of the time."""
        return {"kind": "contention", "share": float(self.share)}

    def expected(self) -> Mapping[str, Any]:
        """How much it takes."""
        return {"share": float(self.share)}

    async def before(self, device: Device, answers: Answers, host: Host) -> Mapping[str, Any]:
        """How long the observer's own completion takes while nothing is wrong."""
        del answers
        return {"pace_s": await device.pace_s(host, times=3)}

    def in_nvml(self, answers: Answers, known: Mapping[str, Any]) -> tuple[bool, str]:
        """NVML lists a process that is not the engine's and is as busy."""
        samples = devices.value(answers, "nvmlDeviceGetProcessUtilization") or ()
        tenants = known.get("tenants")
        others = (SIMULATED_TENANT,) if tenants is None else tenants
        busy = max((each["smUtil"] / 100 for each in samples if each["pid"] in others), default=0.0)
        enough = _ALMOST if tenants is None else _TURNS
        seen = busy > 0 and busy >= enough * known["share"]
        return seen, f"NVML lists another process that keeps {busy:.0%} of the SMs busy"

    async def seen_harmed(self, device: Device, undo: Undo, host: Host) -> Sighting:
        """And the target is slower than it was."""
        listed, usual_s = await super().seen_harmed(device, undo, host), known(device, undo)["pace_s"]
        took_s = await device.pace_s(host)
        if took_s is None or usual_s is None:
            return Sighting(seen=False, what=f"{listed.what}; the observer's own completion got no answer")
        slower = took_s >= usual_s * (1 + _SHOWS * undo["share"] / (1 - undo["share"]))
        told = f"the observer's own completion took {took_s * 1000:.0f}ms, {usual_s * 1000:.0f}ms before"
        return Sighting(listed.seen and slower, f"{listed.what}; {told}")
