"""The device process of an in-memory stack: one GPU under each target, with conditions, NVML's answers and a metric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from chaos.ports import HttpReply
from chaos.testing.stack import reply

_TOTAL_BYTES = 24 << 30
_SM_MHZ = 1440
_LIMIT_MW = 165_000
_SLOWDOWN_C = 90
_GPU_IS_LOST = 15
_LOST_XID = 79
_ECC_XID = 94
_REASONS = {
    "sw_power_cap": 4,
    "hw_slowdown": 8,
    "sw_thermal_slowdown": 32,
    "hw_thermal_slowdown": 72,
    "hw_power_brake": 136,
}
_FIRST_PID = 900
"""Of whoever works on a GPU; a reconfiguration puts it off and the next one comes."""


class FakeDevices:
    """Answers those routes of a device process that faults use. `absent` makes its port refuse."""

    def __init__(self, admin: str) -> None:
        """No GPU yet."""
        self.admin = admin
        self.absent = False
        self._conditions: dict[str, dict[str, Mapping[str, Any]]] = {}
        self._errors: Counter[tuple[str, str]] = Counter()
        self._lives: Counter[str] = Counter()

    def add(self, target: str) -> str:
        """A GPU for a target; its name."""
        self._conditions[f"{target}-gpu0"] = {}
        return f"{target}-gpu0"

    def lost(self, target: str) -> bool:
        """Whether the target's GPU has fallen off the bus."""
        conditions = self._conditions[f"{target}-gpu0"].values()
        return any(each["kind"] == "lost" or each.get("code") == _LOST_XID for each in conditions)

    def hung(self, target: str) -> bool:
        """Whether nothing gets ready on the target's GPU."""
        return any(each["kind"] == "hung" for each in self._conditions[f"{target}-gpu0"].values())

    def slowness(self, target: str) -> float:
        """How many times as long everything takes on the target's GPU."""
        return 1 / (1 - float(self._setting(f"{target}-gpu0", "contention", "share", 0.0)))

    def answer(self, method: str, route: str, body: Any) -> HttpReply:
        """GET /metrics, GET /nvml/v1/devices/{id}, GET /devices/{id}, POST and DELETE of its conditions."""
        words = route.strip("/").split("/")
        if words == ["metrics"]:
            return HttpReply(200, "".join(map(self._last_xid, self._conditions)), {})
        name = words[3] if words[0] == "nvml" else words[1]
        if words[0] == "nvml":
            return reply(200, self._nvml(name))
        conditions = self._conditions[name]
        if method == "POST":
            conditions[body["mark"]] = {key: value for key, value in body.items() if key != "mark"}
            self._errors[name, body.get("errors", "")] += 1
            self._lives[name] += body["kind"] == "mig"
            return reply(201, {"conditions": conditions})
        if method == "DELETE":
            ended = conditions.pop(words[3], None)
            self._lives[name] += bool(ended and ended["kind"] == "mig")
            return reply(204 if ended else 404)
        return reply(200, {"conditions": conditions})

    def _setting(self, name: str, kind: str, key: str, default: Any) -> Any:
        found = (each for each in self._conditions[name].values() if each["kind"] == kind)
        return next((each.get(key, default) for each in found), default)

    def _nvml(self, name: str) -> dict[str, Any]:
        values = {**self._load(name), **self._clocks(name), **self._memory_errors(name), **self._slices(name)}
        if self.lost(name.removesuffix("-gpu0")):
            return {function: {"return": _GPU_IS_LOST, "value": None} for function in values}
        return {function: {"return": 0, "value": value} for function, value in values.items()}

    def _load(self, name: str) -> dict[str, Any]:
        taken = int(self._setting(name, "reserved_memory", "share", 0.0) * _TOTAL_BYTES)
        busy = float(self._setting(name, "contention", "share", 0.0))
        others = [0] if taken or busy else []
        return {
            "nvmlDeviceGetMemoryInfo": {"total": _TOTAL_BYTES, "free": _TOTAL_BYTES - taken, "used": taken},
            "nvmlDeviceGetComputeRunningProcesses": [
                {"pid": _FIRST_PID + self._lives[name], "usedGpuMemory": 1 << 30},
                *({"pid": pid, "usedGpuMemory": taken} for pid in others),
            ],
            "nvmlDeviceGetProcessUtilization": [{"pid": pid, "smUtil": round(100 * busy)} for pid in others],
            "nvmlDeviceGetUtilizationRates": {"gpu": 0, "memory": 0},
        }

    def _clocks(self, name: str) -> dict[str, Any]:
        clock = self._setting(name, "throttle", "clock", 1.0)
        reason = self._setting(name, "throttle", "reason", "")
        return {
            "nvmlDeviceGetClockInfo": {"NVML_CLOCK_SM": round(_SM_MHZ * clock)},
            "nvmlDeviceGetMaxClockInfo": {"NVML_CLOCK_SM": _SM_MHZ},
            "nvmlDeviceGetCurrentClocksEventReasons": _REASONS.get(reason, 0),
            "nvmlDeviceGetTemperature": _SLOWDOWN_C if "thermal" in reason else 40,
            "nvmlDeviceGetTemperatureThreshold": {"NVML_TEMPERATURE_THRESHOLD_SLOWDOWN": _SLOWDOWN_C},
            "nvmlDeviceGetEnforcedPowerLimit": round(_LIMIT_MW * (clock if reason == "sw_power_cap" else 1)),
            "nvmlDeviceGetPowerManagementDefaultLimit": _LIMIT_MW,
        }

    def _memory_errors(self, name: str) -> dict[str, Any]:
        now, remap = self._setting(name, "ecc", "errors", None), self._setting(name, "ecc", "remap", None)
        return {
            "nvmlDeviceGetTotalEccErrors": {
                f"NVML_MEMORY_ERROR_TYPE_{kind.upper()}": {
                    "NVML_VOLATILE_ECC": int(now == kind),
                    "NVML_AGGREGATE_ECC": self._errors[name, kind],
                }
                for kind in ("corrected", "uncorrected")
            },
            "nvmlDeviceGetRemappedRows": {
                "isPending": now == "uncorrected" and remap == "pending",
                "failureOccurred": now == "uncorrected" and remap == "failed",
            },
        }

    def _slices(self, name: str) -> dict[str, Any]:
        profile, stuck = (self._setting(name, "mig", key, None) for key in ("profile", "stuck"))
        return {
            "nvmlDeviceGetMigMode": {"current": int(profile is not None), "pending": int(profile is not None)},
            "nvmlDeviceGetGpuInstances": [{"id": 1, "profile": profile}] if profile and not stuck else [],
        }

    def _last_xid(self, name: str) -> str:
        ecc = _ECC_XID if self._setting(name, "ecc", "errors", None) == "uncorrected" else 0
        return f'DCGM_FI_DEV_XID_ERRORS{{UUID="GPU-{name}"}} {self._setting(name, "xid", "code", ecc)}\n'
