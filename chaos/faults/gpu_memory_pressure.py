"""Somebody else takes memory of the GPU under a target: its KV cache shrinks, and running requests are preempted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from chaos.faults.grips import devices
from chaos.faults.grips.devices import Answers
from chaos.faults.grips.hog import SIMULATED_TENANT, HogFault, Resource
from chaos.settings import setting
from chaos.units import Ratio

_ALMOST = 0.99


@dataclass(frozen=True)
class GpuMemoryPressure(HogFault):
    """Takes memory from a target's GPU."""

    kind: ClassVar[str] = "gpu_memory_pressure"
    summary: ClassVar[str] = (
        "Another process takes a share of the GPU's memory, so that the engine has to do with fewer KV blocks."
    )
    observer: ClassVar[str] = "NVML lists another process on the GPU that holds at least this share of its memory"

    resource: ClassVar[Resource] = "memory"

    share: Ratio = setting("share of the GPU's memory that is taken", default=Ratio(0.75))

    def condition(self) -> Mapping[str, Any]:
        """Another process with a share of the memory."""
        return {"kind": "reserved_memory", "share": float(self.share)}

    def expected(self) -> Mapping[str, Any]:
        """How much it holds."""
        return {"share": float(self.share)}

    def in_nvml(self, answers: Answers, known: Mapping[str, Any]) -> tuple[bool, str]:
        """NVML lists a process that is not the engine's with as much."""
        total = (devices.value(answers, "nvmlDeviceGetMemoryInfo") or {}).get("total", 0)
        processes = devices.value(answers, "nvmlDeviceGetComputeRunningProcesses") or ()
        others = known.get("tenants", (SIMULATED_TENANT,))
        foreign = max((each["usedGpuMemory"] or 0 for each in processes if each["pid"] in others), default=0)
        seen = total > 0 and foreign >= _ALMOST * known["share"] * total
        return seen, f"NVML lists another process with {foreign >> 20} of {total >> 20} MiB"
