"""The driver reports an error (Xid) on the GPU under a target; what follows for the work is the number's matter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips import devices
from chaos.faults.grips.sightings import every_one
from chaos.inventory import Target
from chaos.ports import Host
from chaos.settings import setting


@dataclass(frozen=True)
class GpuXid:
    """Raises an Xid on a target's GPU."""

    kind: ClassVar[str] = "gpu_xid"
    summary: ClassVar[str] = "The driver logs an Xid on the target's GPU, with this number's consequences."
    fidelity: ClassVar[str] = devices.FIDELITY
    observer: ClassVar[str] = "the exporter's series DCGM_FI_DEV_XID_ERRORS of that GPU shows the number"

    code: int = setting(
        "13 31 43 45 48 94 end the process; 63 74 only tell; 64 95 109 120 need a reset; 79 is lost; 119 hangs",
        default=31,
        least=13,
        most=120,
    )

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target needs a GPU."""
        return devices.without_device(targets)

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """Choose the condition's name and learn what to ask for. Raises CannotInject."""
        return {**await devices.prepared(self.kind, targets, host), "code": self.code}

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Bring the condition about. Raises CannotInject."""
        del targets
        await devices.put(undo, {"kind": "xid", "code": self.code}, host)

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """The exporter's last Xid of each GPU is the number."""
        del targets
        return await every_one(_seen_told(device, undo, host) for device in devices.devices_in(undo))

    async def revert(self, undo: Undo, host: Host) -> None:
        """The GPU is reset. Raises RevertFailed."""
        await devices.take_away(undo, host)

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """The exporter shows another last Xid and the target completes."""
        del targets
        return await every_one(_seen_reset(device, undo, host) for device in devices.devices_in(undo))


async def _seen_told(device: devices.Device, undo: Undo, host: Host) -> Sighting:
    last = await devices.exported(device, "DCGM_FI_DEV_XID_ERRORS", host)
    return Sighting(last == undo["code"], f"{device.grip.name}: DCGM_FI_DEV_XID_ERRORS is {last}")


async def _seen_reset(device: devices.Device, undo: Undo, host: Host) -> Sighting:
    last = await devices.exported(device, "DCGM_FI_DEV_XID_ERRORS", host)

    def told(_answers: devices.Answers) -> tuple[bool, str]:
        return last == undo["code"], f"DCGM_FI_DEV_XID_ERRORS is {last}"

    return await devices.seen_well(device, undo, told, host)
