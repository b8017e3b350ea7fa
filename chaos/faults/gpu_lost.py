"""The GPU under a target falls off the bus: what ran on it dies, and nothing can be started on it until the revert."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips import devices
from chaos.faults.grips.sightings import every_one
from chaos.inventory import Target
from chaos.ports import Host


@dataclass(frozen=True)
class GpuLost:
    """Loses a target's GPU."""

    kind: ClassVar[str] = "gpu_lost"
    summary: ClassVar[str] = "The target's GPU is lost: its engine dies and cannot start again until the revert."
    fidelity: ClassVar[str] = devices.FIDELITY
    observer: ClassVar[str] = (
        "NVML answers GPU_IS_LOST (15), and the observer's own completion at the target's address fails"
    )

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target needs a GPU."""
        return devices.without_device(targets)

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """Choose the condition's name and learn what to ask for. Raises CannotInject."""
        return await devices.prepared(self.kind, targets, host)

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Bring the condition about. Raises CannotInject."""
        del targets
        await devices.put(undo, {"kind": "lost"}, host)

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """NVML knows no such GPU any more, and the target answers no completion."""
        del targets
        return await every_one(_seen_lost(device, host) for device in devices.devices_in(undo))

    async def revert(self, undo: Undo, host: Host) -> None:
        """The GPU is back; whoever supervises the engine starts it again. Raises RevertFailed."""
        await devices.take_away(undo, host)

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """NVML answers again and the target completes."""
        del targets
        return await devices.all_well(undo, _lost, host)


def _lost(answers: devices.Answers) -> tuple[bool, str]:
    code = devices.returned(answers, "nvmlDeviceGetMemoryInfo")
    return code == devices.GPU_IS_LOST, f"nvmlDeviceGetMemoryInfo returned {code}"


async def _seen_lost(device: devices.Device, host: Host) -> Sighting:
    lost, status = await devices.seen_by_nvml(device, _lost, host), await device.completion(host)
    return Sighting(lost.seen and status != 200, f"{lost.what}; the observer's own completion got status {status}")
