"""The clocks of the GPU under a target are held down: everything works, and everything is slower."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips import devices
from chaos.inventory import Target
from chaos.ports import Host
from chaos.settings import setting
from chaos.units import Ratio


@dataclass(frozen=True)
class GpuThrottle:
    """Slows a target's GPU down."""

    kind: ClassVar[str] = "gpu_throttle"
    summary: ClassVar[str] = "The target's GPU runs at a part of its clock, as if it were too hot."
    fidelity: ClassVar[str] = devices.FIDELITY
    observer: ClassVar[str] = "NVML gives the reason and an SM clock at or below the wanted share of its best"

    clock: Ratio = setting("share of the best clock that is left", default=Ratio(0.3))
    reason: Literal["hw_thermal_slowdown", "sw_thermal_slowdown", "hw_power_brake", "sw_power_cap", "hw_slowdown"] = (
        setting("what NVML gives as the reason; the thermal ones heat the GPU as well", default="hw_thermal_slowdown")
    )

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target needs a GPU."""
        return devices.without_device(targets)

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """Choose the condition's name and learn what to ask for. Raises CannotInject."""
        return {**await devices.prepared(self.kind, targets, host), "clock": float(self.clock)}

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Bring the condition about. Raises CannotInject."""
        del targets
        await devices.put(undo, {"kind": "throttle", "clock": float(self.clock), "reason": self.reason}, host)

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """NVML shows the lower clock of each GPU."""
        del targets
        return await devices.all_seen(undo, _slowed(undo), host)

    async def revert(self, undo: Undo, host: Host) -> None:
        """The clocks are free again. Raises RevertFailed."""
        await devices.take_away(undo, host)

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """NVML shows a higher clock and the target completes."""
        del targets
        return await devices.all_well(undo, _slowed(undo), host)


_SLOWING = 0x04 | 0x08 | 0x20 | 0x40 | 0x80  # NVML's bits for power caps, slowdowns and brakes


def _slowed(undo: Undo) -> devices.View:
    def view(answers: devices.Answers) -> tuple[bool, str]:
        now, best = (
            (devices.value(answers, f"nvmlDeviceGet{which}ClockInfo") or {}).get("NVML_CLOCK_SM", 0)
            for which in ("", "Max")
        )
        reasons = devices.value(answers, "nvmlDeviceGetCurrentClocksEventReasons") or 0
        slow = bool(reasons & _SLOWING) and now <= undo["clock"] * best + 1
        return slow, f"NVML shows an SM clock of {now} of {best} MHz, reasons {reasons:#x}"

    return view
