"""The clocks of the GPU under a target are held down: everything works, and everything is slower."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from chaos.faults.grips import devices
from chaos.faults.grips.devices import Answers
from chaos.faults.grips.gpu_fault import GpuFault
from chaos.settings import setting
from chaos.units import Ratio

Reason = Literal["hw_thermal_slowdown", "sw_thermal_slowdown", "hw_power_brake", "sw_power_cap", "hw_slowdown"]
_BITS: Mapping[Reason, int] = {
    "sw_power_cap": 0x04,
    "hw_slowdown": 0x08,
    "sw_thermal_slowdown": 0x20,
    "hw_thermal_slowdown": 0x40,
    "hw_power_brake": 0x80,
}
"""NVML's clocks event reasons."""
_SLOWDOWN = "NVML_TEMPERATURE_THRESHOLD_SLOWDOWN"


@dataclass(frozen=True)
class GpuThrottle(GpuFault):
    """Slows a target's GPU down."""

    kind: ClassVar[str] = "gpu_throttle"
    summary: ClassVar[str] = (
        "The target's GPU runs at a part of its clock, because it is too hot or gets too little power."
    )
    observer: ClassVar[str] = (
        "NVML gives the reason, an SM clock at or below the wanted share of its best, and the cause where one can be "
        "measured: the temperature at its limit, the limit of power lowered"
    )

    clock: Ratio = setting("share of the best clock that is left", default=Ratio(0.3))
    reason: Reason = setting(
        "what NVML gives as the reason: the thermal ones come with the temperature, `sw_power_cap` with a lower limit "
        "of power, `hw_power_brake` from outside (a power supply that asks for less)",
        default="hw_thermal_slowdown",
    )

    def condition(self) -> Mapping[str, Any]:
        """A lower clock, and why."""
        return {"kind": "throttle", "clock": float(self.clock), "reason": self.reason}

    def expected(self) -> Mapping[str, Any]:
        """The share of the clock, and why."""
        return {"clock": float(self.clock), "reason": self.reason}

    def in_nvml(self, answers: Answers, known: Mapping[str, Any]) -> tuple[bool, str]:
        """NVML shows the lower clock, the reason for it, and what made it."""
        now, best = (
            (devices.value(answers, f"nvmlDeviceGet{which}ClockInfo") or {}).get("NVML_CLOCK_SM", 0)
            for which in ("", "Max")
        )
        reasons = devices.value(answers, "nvmlDeviceGetCurrentClocksEventReasons") or 0
        cause, words = _cause(answers, known["reason"])
        slow = bool(reasons & _BITS[known["reason"]]) and now <= known["clock"] * best + 1
        return slow and cause, f"NVML shows an SM clock of {now} of {best} MHz, reasons {reasons:#x}{words}"


def _cause(answers: Answers, reason: Reason) -> tuple[bool, str]:
    """Whether what NVML measures explains the reason; nothing is measured of a brake from outside."""
    if "thermal" in reason:
        now = devices.value(answers, "nvmlDeviceGetTemperature") or 0
        limit = (devices.value(answers, "nvmlDeviceGetTemperatureThreshold") or {}).get(_SLOWDOWN, 0)
        return now >= limit > 0, f", {now} of {limit} degrees Celsius"
    if reason == "sw_power_cap":
        now = devices.value(answers, "nvmlDeviceGetEnforcedPowerLimit") or 0
        usual = devices.value(answers, "nvmlDeviceGetPowerManagementDefaultLimit") or 0
        return now < usual, f", a power limit of {now / 1000:g} of {usual / 1000:g} W"
    return True, ""
