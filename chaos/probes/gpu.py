"""What NVML says about the GPU under a target: the operator's view, which needs nothing of the model server.

NVML tells no load of a GPU that is cut into MIG instances.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from chaos.inventory import Target
from chaos.ports import Host
from chaos.probes.probe import Reading

_GPU_IS_LOST = 15


@dataclass(frozen=True)
class Gpu:
    """Asks a device process for NVML's answers. A lost GPU is a reading too: `gpu_lost` 1 and nothing else."""

    kind: ClassVar[str] = "gpu"
    summary: ClassVar[str] = "reads memory, load, heat, clocks and ECC counters of a target's GPU in NVML's terms"
    period_s: ClassVar[float] = 0.5

    def applies_to(self, target: Target) -> bool:
        """Targets whose GPU is known."""
        return bool(target.handles.get("device"))

    async def read(self, target: Target, host: Host) -> Reading:
        """`gpu_lost` and, of a GPU that is there, one value for each thing that NVML measures."""
        device = target.handles["device"]
        reply = await host.http.call("GET", f"http://{device['admin']}/nvml/v1/devices/{device['id']}", timeout_s=1.0)
        if reply.status != 200:
            return Reading(self.kind, target.name, error=reply.error or f"NVML answered {reply.status}")
        try:
            return Reading(self.kind, target.name, values=_values(json.loads(reply.body)))
        except (ValueError, KeyError, TypeError) as odd:
            return Reading(self.kind, target.name, error=f"NVML's answer has another shape: {odd!r}")


def _values(answers: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    if answers["nvmlDeviceGetMemoryInfo"]["return"] == _GPU_IS_LOST:
        return {"gpu_lost": 1.0}
    told = {name.removeprefix("nvmlDeviceGet"): answer["value"] for name, answer in answers.items()}
    errors = told["TotalEccErrors"]
    values = {
        "gpu_lost": 0,
        **({"gpu_utilization_ratio": told["UtilizationRates"]["gpu"] / 100} if told["UtilizationRates"] else {}),
        "gpu_memory_used_bytes": told["MemoryInfo"]["used"],
        "gpu_memory_total_bytes": told["MemoryInfo"]["total"],
        "gpu_temperature_celsius": told["Temperature"],
        "gpu_power_watts": told["PowerUsage"] / 1000,
        "gpu_sm_clock_mhz": told["ClockInfo"]["NVML_CLOCK_SM"],
        "gpu_clocks_event_reasons": told["CurrentClocksEventReasons"],
        "gpu_ecc_corrected_volatile": errors["NVML_MEMORY_ERROR_TYPE_CORRECTED"]["NVML_VOLATILE_ECC"],
        "gpu_ecc_uncorrected_volatile": errors["NVML_MEMORY_ERROR_TYPE_UNCORRECTED"]["NVML_VOLATILE_ECC"],
        "gpu_mig_mode": told["MigMode"]["current"],
    }
    return {name: float(value) for name, value in values.items()}
