"""The device process of an in-memory stack: one GPU under each target, with conditions, NVML's answers and a metric."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from chaos.ports import HttpReply
from chaos.testing.stack import reply

_TOTAL_BYTES = 24 << 30
_SM_MHZ = 1440
_GPU_IS_LOST = 15
_LOST_XID = 79
_ECC_XID = 94
_THERMAL = 0x40


class FakeDevices:
    """Answers those routes of a device process that faults use. `absent` makes its port refuse."""

    def __init__(self, admin: str) -> None:
        """No GPU yet."""
        self.admin = admin
        self.absent = False
        self._conditions: dict[str, dict[str, Mapping[str, Any]]] = {}

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
            return reply(201, {"conditions": conditions})
        if method == "DELETE":
            return reply(204 if conditions.pop(words[3], None) else 404)
        return reply(200, {"conditions": conditions})

    def _setting(self, name: str, kind: str, key: str, default: Any) -> Any:
        found = (each for each in self._conditions[name].values() if each["kind"] == kind)
        return next((each.get(key, default) for each in found), default)

    def _nvml(self, name: str) -> dict[str, Any]:
        errors = {
            kind: int(self._setting(name, "ecc", "errors", None) == kind) for kind in ("corrected", "uncorrected")
        }
        clock = self._setting(name, "throttle", "clock", 1.0)
        taken = int(self._setting(name, "reserved_memory", "share", 0.0) * _TOTAL_BYTES)
        values: dict[str, Any] = {
            "nvmlDeviceGetMemoryInfo": {"total": _TOTAL_BYTES, "free": _TOTAL_BYTES - taken, "used": taken},
            "nvmlDeviceGetComputeRunningProcesses": [{"pid": 0, "usedGpuMemory": taken}] if taken else [],
            "nvmlDeviceGetUtilizationRates": {"gpu": 0, "memory": 0},
            "nvmlDeviceGetClockInfo": {"NVML_CLOCK_SM": round(_SM_MHZ * clock)},
            "nvmlDeviceGetMaxClockInfo": {"NVML_CLOCK_SM": _SM_MHZ},
            "nvmlDeviceGetCurrentClocksEventReasons": _THERMAL if clock < 1 else 0,
            "nvmlDeviceGetTotalEccErrors": {
                f"NVML_MEMORY_ERROR_TYPE_{kind.upper()}": {"NVML_VOLATILE_ECC": count} for kind, count in errors.items()
            },
        }
        if self.lost(name.removesuffix("-gpu0")):
            return {function: {"return": _GPU_IS_LOST, "value": None} for function in values}
        return {function: {"return": 0, "value": value} for function, value in values.items()}

    def _last_xid(self, name: str) -> str:
        ecc = _ECC_XID if self._setting(name, "ecc", "errors", None) == "uncorrected" else 0
        return f'DCGM_FI_DEV_XID_ERRORS{{UUID="GPU-{name}"}} {self._setting(name, "xid", "code", ecc)}\n'
