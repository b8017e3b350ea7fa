"""NVML's answers about one GPU as JSON, by function name: `python -m chaos.adapters.nvml NUMBER`.

The shape is the one in which the bundled stack's device process answers, so one reader does for both. It is a process
of its own because a GPU that hangs may take whoever asks about it along. Exit status 1: there is no NVML here.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

_SUCCESS = {"return": 0, "name": "NVML_SUCCESS"}
_US_PER_S = 1_000_000


def answers(nvml: Any, number: int, wall_s: float) -> dict[str, dict[str, Any]]:
    """What the library says about a GPU; `nvml` is the module pynvml. Raises its NVMLError where there is none."""
    handle = nvml.nvmlDeviceGetHandleByIndex(number)
    asked = {**_load(nvml, handle, wall_s), **_state(nvml, handle)}
    return {name: _answer(nvml, ask) for name, ask in asked.items()}


def _answer(nvml: Any, ask: Callable[[], Any]) -> dict[str, Any]:
    try:
        return {**_SUCCESS, "value": ask()}
    except nvml.NVMLError as refused:
        return {"return": int(refused.value), "name": str(refused), "value": None}


def _load(nvml: Any, handle: Any, wall_s: float) -> Mapping[str, Callable[[], Any]]:
    return {
        "nvmlDeviceGetName": lambda: nvml.nvmlDeviceGetName(handle),
        "nvmlDeviceGetUUID": lambda: nvml.nvmlDeviceGetUUID(handle),
        "nvmlDeviceGetMemoryInfo": lambda: _fields(nvml.nvmlDeviceGetMemoryInfo(handle), "total", "free", "used"),
        "nvmlDeviceGetComputeRunningProcesses": lambda: [
            _fields(each, "pid", "usedGpuMemory") for each in nvml.nvmlDeviceGetComputeRunningProcesses(handle)
        ],
        "nvmlDeviceGetProcessUtilization": lambda: [
            _fields(each, "pid", "smUtil")
            for each in nvml.nvmlDeviceGetProcessUtilization(handle, int((wall_s - 1) * _US_PER_S))
        ],
        "nvmlDeviceGetUtilizationRates": lambda: _fields(nvml.nvmlDeviceGetUtilizationRates(handle), "gpu", "memory"),
    }


def _state(nvml: Any, handle: Any) -> Mapping[str, Callable[[], Any]]:
    def clock(ask: Callable[[Any, int], int]) -> Mapping[str, int]:
        return {"NVML_CLOCK_SM": ask(handle, nvml.NVML_CLOCK_SM)}

    def errors(kind: int) -> Mapping[str, int]:
        return {
            "NVML_VOLATILE_ECC": nvml.nvmlDeviceGetTotalEccErrors(handle, kind, nvml.NVML_VOLATILE_ECC),
            "NVML_AGGREGATE_ECC": nvml.nvmlDeviceGetTotalEccErrors(handle, kind, nvml.NVML_AGGREGATE_ECC),
        }

    return {
        "nvmlDeviceGetTemperature": lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
        "nvmlDeviceGetPowerUsage": lambda: nvml.nvmlDeviceGetPowerUsage(handle),
        "nvmlDeviceGetClockInfo": lambda: clock(nvml.nvmlDeviceGetClockInfo),
        "nvmlDeviceGetMaxClockInfo": lambda: clock(nvml.nvmlDeviceGetMaxClockInfo),
        "nvmlDeviceGetCurrentClocksEventReasons": lambda: nvml.nvmlDeviceGetCurrentClocksEventReasons(handle),
        "nvmlDeviceGetTotalEccErrors": lambda: {
            "NVML_MEMORY_ERROR_TYPE_CORRECTED": errors(nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED),
            "NVML_MEMORY_ERROR_TYPE_UNCORRECTED": errors(nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED),
        },
        "nvmlDeviceGetMigMode": lambda: dict(
            zip(("current", "pending"), nvml.nvmlDeviceGetMigMode(handle), strict=True)
        ),
    }


def _fields(record: Any, *names: str) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names}


def main(words: list[str]) -> int:
    """Ask, print, leave."""
    try:
        import pynvml  # noqa: PLC0415  an extra; where it is missing, that is the answer
    except ImportError as failure:
        sys.stderr.write(f"{failure}: pip install 'brownout[gpu]'\n")
        return 1
    try:
        pynvml.nvmlInit()
        told = answers(pynvml, int(words[0]), time.time())
    except pynvml.NVMLError as failure:
        sys.stderr.write(f"{failure}\n")
        return 1
    sys.stdout.write(json.dumps(told))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
