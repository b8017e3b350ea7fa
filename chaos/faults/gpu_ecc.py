"""The memory of the GPU under a target makes errors: corrected ones that are only counted, or one that is not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from chaos.faults.fault import Undo
from chaos.faults.grips import devices
from chaos.faults.grips.devices import Answers
from chaos.faults.grips.gpu_fault import GpuFault
from chaos.settings import setting


@dataclass(frozen=True)
class GpuEcc(GpuFault):
    """Makes memory errors on a target's GPU."""

    kind: ClassVar[str] = "gpu_ecc"
    summary: ClassVar[str] = "The target's GPU reports ECC errors; an uncorrectable one ends what runs on it."
    observer: ClassVar[str] = "NVML's volatile ECC counter of that kind of error has risen"

    errors: Literal["corrected", "uncorrected"] = setting(
        "corrected ones cost nothing; an uncorrected one ends the process that used the memory", default="uncorrected"
    )
    contained: bool = setting("false: the GPU cannot be used again until it is reset", default=True)

    def condition(self) -> Mapping[str, Any]:
        """Errors of this kind."""
        return {"kind": "ecc", "errors": self.errors, "contained": self.contained}

    def expected(self) -> Mapping[str, Any]:
        """Which counter rises."""
        return {"errors": self.errors}

    def in_nvml(self, answers: Answers, undo: Undo) -> tuple[bool, str]:
        """NVML has counted such errors since the last reset."""
        counts = devices.value(answers, "nvmlDeviceGetTotalEccErrors") or {}
        kind = f"NVML_MEMORY_ERROR_TYPE_{undo['errors'].upper()}"
        count = counts.get(kind, {}).get("NVML_VOLATILE_ECC", 0)
        return count > 0, f"NVML counts {count} volatile {undo['errors']} ECC errors"
