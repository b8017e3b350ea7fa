"""GPUs as NVIDIA's dcgm-exporter publishes them: its metric names, types, units and labels.

A lost device has no series, as with the real exporter, but for the number of its last Xid; one that is cut into MIG
instances says which one a series is about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from target_stack.device.gpu import Gpu
from target_stack.device.nvml import bus_id_of, uuid_of

_MIB = 1 << 20
_LAST_XID = "DCGM_FI_DEV_XID_ERRORS"
_LOAD = "DCGM_FI_DEV_GPU_UTIL"

_FIELDS: tuple[tuple[str, str, str, Callable[[Gpu], float]], ...] = (
    ("DCGM_FI_DEV_SM_CLOCK", "gauge", "SM clock frequency (in MHz).", lambda g: g.spec.sm_mhz * g.clock),
    ("DCGM_FI_DEV_MEM_CLOCK", "gauge", "Memory clock frequency (in MHz).", lambda g: g.spec.memory_mhz),
    ("DCGM_FI_DEV_GPU_TEMP", "gauge", "GPU temperature (in C).", lambda g: round(g.temperature_c)),
    ("DCGM_FI_DEV_POWER_USAGE", "gauge", "Power draw (in W).", lambda g: g.power_w),
    ("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "counter", "Energy (in mJ).", lambda g: 1000 * g.counters.energy_j),
    (_LOAD, "gauge", "GPU utilization (in %).", lambda g: round(100 * g.utilization)),
    (_LAST_XID, "gauge", "Value of the last XID error encountered.", lambda g: g.last_xid),
    ("DCGM_FI_DEV_CLOCK_THROTTLE_REASONS", "gauge", "Bits of the reasons for a lower clock.", lambda g: g.reasons),
    ("DCGM_FI_DEV_THERMAL_VIOLATION", "counter", "Slow for heat (in us).", lambda g: 1e6 * g.counters.hot_s),
    ("DCGM_FI_DEV_POWER_VIOLATION", "counter", "Slow for power (in us).", lambda g: 1e6 * g.counters.capped_s),
    ("DCGM_FI_DEV_FB_FREE", "gauge", "Memory free (in MiB).", lambda g: (g.spec.total_bytes - g.used_bytes) // _MIB),
    ("DCGM_FI_DEV_FB_USED", "gauge", "Memory used (in MiB).", lambda g: g.used_bytes // _MIB),
    ("DCGM_FI_DEV_ECC_SBE_VOL_TOTAL", "counter", "Corrected errors.", lambda g: int(g.counters.corrected_volatile)),
    ("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "counter", "Uncorrected errors.", lambda g: g.counters.uncorrected_volatile),
    ("DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", "counter", "Corrected, ever.", lambda g: int(g.counters.corrected_aggregate)),
    ("DCGM_FI_DEV_ECC_DBE_AGG_TOTAL", "counter", "Uncorrected, ever.", lambda g: g.counters.uncorrected_aggregate),
    ("DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS", "counter", "Remapped rows.", lambda g: g.counters.remapped_rows),
    ("DCGM_FI_DEV_ROW_REMAP_FAILURE", "gauge", "Whether a row has no spare.", lambda g: g.counters.remap_failed),
    ("DCGM_FI_DEV_ROW_REMAP_PENDING", "gauge", "Whether rows wait for a reset.", lambda g: g.counters.pending_rows > 0),
)  # fmt: skip


def exposition(gpus: Iterable[Gpu]) -> str:
    """The whole scrape."""
    known = tuple(gpus)
    lines = []
    for name, kind, text, read in _FIELDS:
        lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
        shown = (gpu for gpu in known if _has(gpu, name))
        lines += [f"{name}{{{_labels(gpu)}}} {float(read(gpu)):.17g}" for gpu in shown]
    return "\n".join(lines) + "\n"


def _has(gpu: Gpu, name: str) -> bool:
    """A lost device keeps only its last Xid, one in MIG mode has no load as a whole."""
    if gpu.effects.lost:
        return name == _LAST_XID
    return name != _LOAD or not gpu.effects.mig_profile


def _labels(gpu: Gpu) -> str:
    labels: Mapping[str, str] = {
        "gpu": str(gpu.index),
        "UUID": uuid_of(gpu),
        "pci_bus_id": bus_id_of(gpu),
        "device": f"nvidia{gpu.index}",
        "modelName": gpu.spec.name,
        "Hostname": gpu.id.rpartition("-")[0],
    }
    if gpu.effects.mig_profile:
        labels = {**labels, "GPU_I_PROFILE": gpu.effects.mig_profile, "GPU_I_ID": "1"}
    return ",".join(f'{key}="{value}"' for key, value in labels.items())
