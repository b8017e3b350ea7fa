"""The GPU under a target hangs: a kernel never returns. The server answers /health, and no token comes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips import devices
from chaos.faults.grips.grip import ANSWER_S
from chaos.faults.grips.sightings import every_one
from chaos.inventory import Target
from chaos.ports import Host


@dataclass(frozen=True)
class GpuHang:
    """Hangs a target's GPU."""

    kind: ClassVar[str] = "gpu_hang"
    summary: ClassVar[str] = (
        "The target's GPU hangs: full utilisation, no progress, no error, and the server's health check says 200."
    )
    fidelity: ClassVar[str] = devices.FIDELITY
    observer: ClassVar[str] = "the observer's own completion falls silent while /health of the same address answers 200"

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target needs a GPU."""
        return devices.without_device(targets)

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """Choose the condition's name and learn what to ask for. Raises CannotInject."""
        return await devices.prepared(self.kind, targets, host)

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Bring the condition about. Raises CannotInject."""
        del targets
        await devices.put(undo, {"kind": "hung"}, host)

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """A completion gets no answer in time, the health check does."""
        del targets
        return await every_one(_seen_hung(device, host) for device in devices.devices_in(undo))

    async def revert(self, undo: Undo, host: Host) -> None:
        """The kernel returns, and work goes on where it stood. Raises RevertFailed."""
        await devices.take_away(undo, host)

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """The target completes again."""
        del targets
        return await devices.all_well(undo, _lost, host)


def _lost(answers: devices.Answers) -> tuple[bool, str]:
    """A hang is invisible to NVML: only a lost device would explain the silence otherwise."""
    code = devices.returned(answers, "nvmlDeviceGetUtilizationRates")
    return code == devices.GPU_IS_LOST, f"nvmlDeviceGetUtilizationRates returned {code}"


async def _seen_hung(device: devices.Device, host: Host) -> Sighting:
    status = await device.completion(host)
    health = await host.http.call("GET", f"http://{device.grip.address}/health", timeout_s=ANSWER_S)
    return Sighting(
        status == 0 and health.status == 200,
        f"{device.grip.name}: the observer's own completion got status {status} in {ANSWER_S:g}s, "
        f"its health check {health.status}",
    )
