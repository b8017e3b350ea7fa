"""A GPU in the terms of NVIDIA's management library: its function names, units, structures and return codes.

A function that NVML has and we answer is named as there; its answer is `{"return", "name", "value"}`. Bytes for memory,
milliwatts for power, percent for utilisation, MHz for clocks, degrees Celsius for temperature.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from target_stack.device.conditions import MIG_PROFILES
from target_stack.device.gpu import Gpu

SUCCESS = (0, "NVML_SUCCESS")
NOT_SUPPORTED = (3, "NVML_ERROR_NOT_SUPPORTED")
FUNCTION_NOT_FOUND = (13, "NVML_ERROR_FUNCTION_NOT_FOUND")
GPU_IS_LOST = (15, "NVML_ERROR_GPU_IS_LOST")
_SHUTDOWN_ABOVE_SLOWDOWN_C = 5


def _identity(gpu: Gpu) -> dict[str, Any]:
    return {
        "nvmlDeviceGetName": gpu.spec.name,
        "nvmlDeviceGetIndex": gpu.index,
        "nvmlDeviceGetUUID": uuid_of(gpu),
        "nvmlDeviceGetPciInfo": {"busId": bus_id_of(gpu)},
    }


def _memory(gpu: Gpu) -> dict[str, Any]:
    used, total = int(gpu.used_bytes), gpu.spec.total_bytes
    own = {"pid": gpu.engine_pid, "usedGpuMemory": int(gpu.engine_bytes)}
    other = {"pid": 0, "usedGpuMemory": int(gpu.reserved_bytes)}
    processes = [each for each in (own, other) if each["usedGpuMemory"]]
    busy = {gpu.engine_pid: gpu.own_utilization, 0: gpu.effects.other_tenants}
    return {
        "nvmlDeviceGetMemoryInfo": {"total": total, "free": total - used, "used": used},
        "nvmlDeviceGetComputeRunningProcesses": processes,
        "nvmlDeviceGetProcessUtilization": [
            {"pid": each["pid"], "smUtil": round(100 * busy[each["pid"]])} for each in processes
        ],
    }


def _load(gpu: Gpu) -> dict[str, Any]:
    spec = gpu.spec
    return {
        "nvmlDeviceGetUtilizationRates": {
            "gpu": round(100 * gpu.utilization),
            "memory": round(100 * gpu.utilization * gpu.clock / 2),
        },
        "nvmlDeviceGetTemperature": round(gpu.temperature_c),
        "nvmlDeviceGetTemperatureThreshold": {
            "NVML_TEMPERATURE_THRESHOLD_SLOWDOWN": round(spec.slowdown_c),
            "NVML_TEMPERATURE_THRESHOLD_SHUTDOWN": round(spec.slowdown_c) + _SHUTDOWN_ABOVE_SLOWDOWN_C,
        },
        "nvmlDeviceGetPowerUsage": round(1000 * gpu.power_w),
        "nvmlDeviceGetEnforcedPowerLimit": round(1000 * gpu.limit_w),
        "nvmlDeviceGetPowerManagementDefaultLimit": round(1000 * spec.limit_w),
        "nvmlDeviceGetTotalEnergyConsumption": round(1000 * gpu.counters.energy_j),
        "nvmlDeviceGetClockInfo": {
            "NVML_CLOCK_SM": round(spec.sm_mhz * gpu.clock),
            "NVML_CLOCK_MEM": round(spec.memory_mhz),
        },
        "nvmlDeviceGetMaxClockInfo": {"NVML_CLOCK_SM": round(spec.sm_mhz), "NVML_CLOCK_MEM": round(spec.memory_mhz)},
        "nvmlDeviceGetCurrentClocksEventReasons": gpu.reasons,
        "nvmlDeviceGetCurrentClocksThrottleReasons": gpu.reasons,
    }


def _errors(gpu: Gpu) -> dict[str, Any]:
    counters = gpu.counters
    return {
        "nvmlDeviceGetEccMode": {"current": 1, "pending": 1},
        "nvmlDeviceGetTotalEccErrors": {
            "NVML_MEMORY_ERROR_TYPE_CORRECTED": {
                "NVML_VOLATILE_ECC": int(counters.corrected_volatile),
                "NVML_AGGREGATE_ECC": int(counters.corrected_aggregate),
            },
            "NVML_MEMORY_ERROR_TYPE_UNCORRECTED": {
                "NVML_VOLATILE_ECC": counters.uncorrected_volatile,
                "NVML_AGGREGATE_ECC": counters.uncorrected_aggregate,
            },
        },
        "nvmlDeviceGetRemappedRows": {
            "corrRows": 0,
            "uncRows": counters.remapped_rows + counters.pending_rows,
            "isPending": counters.pending_rows > 0,
            "failureOccurred": counters.remap_failed,
        },
    }


def _slices(gpu: Gpu) -> dict[str, Any]:
    profile = gpu.effects.mig_profile
    instances: list[dict[str, Any]] = []
    if profile and not gpu.effects.unusable:
        memory = int(MIG_PROFILES[profile][1] * gpu.spec.total_bytes)
        instances = [{"id": 1, "profile": profile, "memorySizeMB": memory >> 20}]
    uuids = [f"MIG-{gpu.id}-{each['profile']}" for each in instances]
    return {
        "nvmlDeviceGetMigMode": {"current": int(profile is not None), "pending": int(profile is not None)},
        "nvmlDeviceGetGpuInstances": instances,
        "nvmlDeviceGetMigDeviceHandleByIndex": [{"uuid": uuid} for uuid in uuids],
    }


_NOT_OF_A_CUT_DEVICE = ("nvmlDeviceGetUtilizationRates", "nvmlDeviceGetProcessUtilization")
_ASKED: tuple[Callable[[Gpu], dict[str, Any]], ...] = (_identity, _memory, _load, _errors, _slices)


def query(gpu: Gpu) -> dict[str, dict[str, Any]]:
    """Every answer by function name; a lost device answers each with GPU_IS_LOST, one in MIG mode tells no load."""
    values = {name: value for ask in _ASKED for name, value in ask(gpu).items()}
    if gpu.effects.lost:
        return {name: reply(GPU_IS_LOST) for name in values}
    answers = {name: reply(SUCCESS, value) for name, value in values.items()}
    if gpu.effects.mig_profile:
        answers |= {name: reply(NOT_SUPPORTED) for name in _NOT_OF_A_CUT_DEVICE}
    return answers


def reply(code: tuple[int, str], value: Any = None) -> dict[str, Any]:
    """One answer."""
    return {"return": code[0], "name": code[1], "value": value}


def uuid_of(gpu: Gpu) -> str:
    """The device's name for life."""
    return f"GPU-{gpu.id}"


def bus_id_of(gpu: Gpu) -> str:
    """Where the device sits."""
    return f"00000000:{gpu.index + 1:02X}:00.0"
