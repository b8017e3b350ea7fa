"""The memory of the GPU under a target makes errors: corrected ones that are only counted, or one that is not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips import devices
from chaos.inventory import Target
from chaos.ports import Host
from chaos.settings import setting


@dataclass(frozen=True)
class GpuEcc:
    """Makes memory errors on a target's GPU."""

    kind: ClassVar[str] = "gpu_ecc"
    summary: ClassVar[str] = "The target's GPU reports ECC errors; an uncorrectable one ends what runs on it."
    fidelity: ClassVar[str] = devices.FIDELITY
    observer: ClassVar[str] = "NVML's volatile ECC counter of that kind of error has risen"

    errors: Literal["corrected", "uncorrected"] = setting(
        "corrected ones cost nothing; an uncorrected one ends the process that used the memory", default="uncorrected"
    )
    contained: bool = setting("false: the GPU cannot be used again until it is reset", default=True)

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target needs a GPU."""
        return devices.without_device(targets)

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """Choose the condition's name and learn what to ask for. Raises CannotInject."""
        return {**await devices.prepared(self.kind, targets, host), "errors": self.errors}

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Bring the condition about. Raises CannotInject."""
        del targets
        await devices.put(undo, {"kind": "ecc", "errors": self.errors, "contained": self.contained}, host)

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """NVML has counted errors on each GPU."""
        del targets
        return await devices.all_seen(undo, _counted(undo), host)

    async def revert(self, undo: Undo, host: Host) -> None:
        """The GPU is reset: volatile counters are back at 0, its bad row is remapped. Raises RevertFailed."""
        await devices.take_away(undo, host)

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """NVML counts none and the target completes."""
        del targets
        return await devices.all_well(undo, _counted(undo), host)


def _counted(undo: Undo) -> devices.View:
    def view(answers: devices.Answers) -> tuple[bool, str]:
        counts = devices.value(answers, "nvmlDeviceGetTotalEccErrors") or {}
        kind = f"NVML_MEMORY_ERROR_TYPE_{undo['errors'].upper()}"
        count = counts.get(kind, {}).get("NVML_VOLATILE_ECC", 0)
        return count > 0, f"NVML counts {count} volatile {undo['errors']} ECC errors"

    return view
