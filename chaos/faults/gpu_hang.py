"""The GPU under a target hangs: a kernel never returns. The server answers /health, and no token comes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips import devices
from chaos.faults.grips.devices import Answers, Device
from chaos.faults.grips.gpu_fault import GpuFault
from chaos.faults.grips.grip import ANSWER_S
from chaos.ports import Host


@dataclass(frozen=True)
class GpuHang(GpuFault):
    """Hangs a target's GPU."""

    kind: ClassVar[str] = "gpu_hang"
    summary: ClassVar[str] = (
        "The target's GPU hangs: full utilisation, no progress, no error, and the server's health check says 200."
    )
    observer: ClassVar[str] = "the observer's own completion falls silent while /health of the same address answers 200"

    def condition(self) -> Mapping[str, Any]:
        """A kernel that never returns."""
        return {"kind": "hung"}

    def in_nvml(self, answers: Answers, _known: Mapping[str, Any]) -> tuple[bool, str]:
        """A hang is invisible to NVML: only a lost device would explain the silence otherwise."""
        code = devices.returned(answers, "nvmlDeviceGetUtilizationRates")
        return code == devices.GPU_IS_LOST, f"nvmlDeviceGetUtilizationRates returned {code}"

    async def seen_harmed(self, device: Device, _undo: Undo, host: Host) -> Sighting:
        """A completion gets no answer in time, the health check does."""
        status = await device.completion(host)
        health = await host.http.call("GET", f"http://{device.grip.address}/health", timeout_s=ANSWER_S)
        return Sighting(
            status == 0 and health.status == 200,
            f"{device.grip.name}: the observer's own completion got status {status} in {ANSWER_S:g}s, "
            f"its health check {health.status}",
        )
