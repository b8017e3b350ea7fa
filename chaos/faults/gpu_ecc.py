"""The memory of the GPU under a target makes errors: single bits that are corrected, or two that are not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from chaos.faults.grips import devices
from chaos.faults.grips.devices import Answers, Device
from chaos.faults.grips.gpu_fault import GpuFault
from chaos.ports import Host
from chaos.settings import setting
from chaos.units import Rate


@dataclass(frozen=True)
class GpuEcc(GpuFault):
    """Makes memory errors on a target's GPU."""

    kind: ClassVar[str] = "gpu_ecc"
    summary: ClassVar[str] = "The target's GPU reports ECC errors; an uncorrectable one ends what runs on it."
    observer: ClassVar[str] = (
        "NVML's ECC counters of that kind of error have risen and, for an uncorrected one, a row of memory waits for "
        "its remapping or could not be remapped"
    )

    errors: Literal["corrected", "uncorrected"] = setting(
        "corrected (a single bit each) cost nothing and come on and on; an uncorrected one (two bits of a word) comes "
        "once and ends the process that used the memory",
        default="uncorrected",
    )
    rate: Rate = setting("how often corrected ones come", default=Rate(20))
    contained: bool = setting("false: the GPU cannot be used again until it is reset", default=True)
    remap: Literal["pending", "failed"] = setting(
        "what becomes of the row of an uncorrected one: the next reset remaps it, or it has no spare and the GPU "
        "cannot be used again",
        default="pending",
    )

    def condition(self) -> Mapping[str, Any]:
        """Errors of this kind."""
        rate_per_s = float(self.rate)
        told = {"errors": self.errors, "contained": self.contained, "remap": self.remap, "rate_per_s": rate_per_s}
        return {"kind": "ecc", **told}

    def expected(self) -> Mapping[str, Any]:
        """Which counter rises, and which flag of the row remapper."""
        flags = {"pending": "isPending", "failed": "failureOccurred"}
        return {"errors": self.errors, "flag": flags[self.remap] if self.errors == "uncorrected" else None}

    async def before(self, device: Device, answers: Answers, host: Host) -> Mapping[str, Any]:
        """How many there have ever been."""
        del device, host
        return {"ever": _count(answers, self.errors, "NVML_AGGREGATE_ECC")}

    def in_nvml(self, answers: Answers, known: Mapping[str, Any]) -> tuple[bool, str]:
        """NVML has counted such errors since the last reset, more than there were, and the row remapper agrees."""
        errors, flag = known["errors"], known["flag"]
        new, ever = (_count(answers, errors, f"NVML_{life}_ECC") for life in ("VOLATILE", "AGGREGATE"))
        remapper = devices.value(answers, "nvmlDeviceGetRemappedRows") or {}
        what = f"NVML counts {new} volatile {errors} ECC errors, {ever} ever ({known['ever']} before)"
        rows = f", row remapper: {flag}={remapper.get(flag)}" if flag else ""
        return new > 0 and ever > known["ever"] and (flag is None or bool(remapper.get(flag))), what + rows


def _count(answers: Answers, errors: str, life: str) -> int:
    counts = devices.value(answers, "nvmlDeviceGetTotalEccErrors") or {}
    return int(counts.get(f"NVML_MEMORY_ERROR_TYPE_{errors.upper()}", {}).get(life, 0))
