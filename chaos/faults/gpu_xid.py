"""The driver reports an error (Xid) on the GPU under a target; what follows for the work is the number's matter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips import devices, xids
from chaos.faults.grips.devices import Answers, Device
from chaos.faults.grips.gpu_fault import GpuFault
from chaos.inventory import Target
from chaos.ports import Host
from chaos.settings import setting

_LAST_XID = "DCGM_FI_DEV_XID_ERRORS"


@dataclass(frozen=True)
class GpuXid(GpuFault):
    """Raises an Xid on a target's GPU."""

    kind: ClassVar[str] = "gpu_xid"
    summary: ClassVar[str] = "The driver logs an Xid on the target's GPU, with this number's consequences."
    observer: ClassVar[str] = "the exporter's series DCGM_FI_DEV_XID_ERRORS of that GPU shows the number"
    notes: ClassVar[tuple[str, ...]] = xids.table()

    code: int = setting("the number; what follows is below", default=31)

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target needs a GPU, and the number a meaning."""
        if self.code in xids.XIDS:
            return super().problems(targets)
        known = ", ".join(map(str, xids.XIDS))
        return (
            f"nothing is known of Xid {self.code}; choose one of {known} (`brownout faults gpu_xid` explains them)",
        )

    def condition(self) -> Mapping[str, Any]:
        """This number."""
        return {"kind": "xid", "code": self.code}

    def expected(self) -> Mapping[str, Any]:
        """The number."""
        return {"code": self.code}

    def in_nvml(self, _answers: Answers, _known: Mapping[str, Any]) -> tuple[bool, str]:
        """NVML has no call for the last Xid; the exporter does."""
        return False, "NVML answers"

    async def seen_harmed(self, device: Device, undo: Undo, host: Host) -> Sighting:
        """The exporter's last Xid is the number."""
        last = await devices.exported(device, _LAST_XID, host)
        what = f"{device.grip.name}: {_LAST_XID} is {last}"
        seen = last == undo["code"]
        return Sighting(seen, f"{what} ({xids.advice(undo['code'])})" if seen else what)

    async def seen_well(self, device: Device, undo: Undo, host: Host) -> Sighting:
        """And it is another one now, unless others still act on the GPU."""
        told = await self.seen_harmed(device, undo, host)
        return await devices.seen_well(device, undo, lambda _answers: (told.seen, told.what), host)
