"""The GPU under a target falls off the bus: what ran on it dies, and nothing can be started on it until the revert."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips import devices
from chaos.faults.grips.devices import Answers, Device
from chaos.faults.grips.gpu_fault import GpuFault
from chaos.ports import Host


@dataclass(frozen=True)
class GpuLost(GpuFault):
    """Loses a target's GPU."""

    kind: ClassVar[str] = "gpu_lost"
    summary: ClassVar[str] = "The target's GPU is lost: its engine dies and cannot start again until the revert."
    observer: ClassVar[str] = (
        "NVML answers GPU_IS_LOST (15), and the observer's own completion at the target's address fails"
    )

    def condition(self) -> Mapping[str, Any]:
        """Off the bus."""
        return {"kind": "lost"}

    def in_nvml(self, answers: Answers, _known: Mapping[str, Any]) -> tuple[bool, str]:
        """NVML knows no such GPU any more."""
        code = devices.returned(answers, "nvmlDeviceGetMemoryInfo")
        return code == devices.GPU_IS_LOST, f"nvmlDeviceGetMemoryInfo returned {code}"

    async def seen_harmed(self, device: Device, undo: Undo, host: Host) -> Sighting:
        """And the target answers no completion."""
        lost, status = await super().seen_harmed(device, undo, host), await device.completion(host)
        return Sighting(lost.seen and status != 200, f"{lost.what}; the observer's own completion got status {status}")
