"""The clocks of the GPU under a target are held down: everything works, and everything is slower."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from chaos.faults.fault import Undo
from chaos.faults.grips import devices
from chaos.faults.grips.devices import Answers
from chaos.faults.grips.gpu_fault import GpuFault
from chaos.settings import setting
from chaos.units import Ratio

_SLOWING = 0x04 | 0x08 | 0x20 | 0x40 | 0x80  # NVML's bits for power caps, slowdowns and brakes


@dataclass(frozen=True)
class GpuThrottle(GpuFault):
    """Slows a target's GPU down."""

    kind: ClassVar[str] = "gpu_throttle"
    summary: ClassVar[str] = "The target's GPU runs at a part of its clock, as if it were too hot."
    observer: ClassVar[str] = "NVML gives the reason and an SM clock at or below the wanted share of its best"

    clock: Ratio = setting("share of the best clock that is left", default=Ratio(0.3))
    reason: Literal["hw_thermal_slowdown", "sw_thermal_slowdown", "hw_power_brake", "sw_power_cap", "hw_slowdown"] = (
        setting("what NVML gives as the reason; the thermal ones heat the GPU as well", default="hw_thermal_slowdown")
    )

    def condition(self) -> Mapping[str, Any]:
        """A lower clock, and why."""
        return {"kind": "throttle", "clock": float(self.clock), "reason": self.reason}

    def expected(self) -> Mapping[str, Any]:
        """The share of the clock."""
        return {"clock": float(self.clock)}

    def in_nvml(self, answers: Answers, undo: Undo) -> tuple[bool, str]:
        """NVML shows the lower clock and a reason for it."""
        now, best = (
            (devices.value(answers, f"nvmlDeviceGet{which}ClockInfo") or {}).get("NVML_CLOCK_SM", 0)
            for which in ("", "Max")
        )
        reasons = devices.value(answers, "nvmlDeviceGetCurrentClocksEventReasons") or 0
        slow = bool(reasons & _SLOWING) and now <= undo["clock"] * best + 1
        return slow, f"NVML shows an SM clock of {now} of {best} MHz, reasons {reasons:#x}"
