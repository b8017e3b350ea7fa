"""Somebody else takes memory of the GPU under a target: its KV cache shrinks, and running requests are preempted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips import devices
from chaos.inventory import Target
from chaos.ports import Host
from chaos.settings import setting
from chaos.units import Ratio


@dataclass(frozen=True)
class GpuMemoryPressure:
    """Takes memory from a target's GPU."""

    kind: ClassVar[str] = "gpu_memory_pressure"
    summary: ClassVar[str] = (
        "Another process takes a share of the GPU's memory, so that the engine has to do with fewer KV blocks."
    )
    fidelity: ClassVar[str] = devices.FIDELITY
    observer: ClassVar[str] = "NVML lists another process on the GPU that holds at least this share of its memory"

    share: Ratio = setting("share of the GPU's memory that is taken", default=Ratio(0.75))

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target needs a GPU."""
        return devices.without_device(targets)

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """Choose the condition's name and learn what to ask for. Raises CannotInject."""
        return {**await devices.prepared(self.kind, targets, host), "share": float(self.share)}

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Bring the condition about. Raises CannotInject."""
        del targets
        await devices.put(undo, {"kind": "reserved_memory", "share": float(self.share)}, host)

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """NVML lists the other process on each GPU."""
        del targets
        return await devices.all_seen(undo, _taken(undo), host)

    async def revert(self, undo: Undo, host: Host) -> None:
        """The other process leaves. Raises RevertFailed."""
        await devices.take_away(undo, host)

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """NVML lists no such process and the target completes."""
        del targets
        return await devices.all_well(undo, _taken(undo), host)


_ALMOST = 0.99


def _taken(undo: Undo) -> devices.View:
    def view(answers: devices.Answers) -> tuple[bool, str]:
        total = (devices.value(answers, "nvmlDeviceGetMemoryInfo") or {}).get("total", 0)
        processes = devices.value(answers, "nvmlDeviceGetComputeRunningProcesses") or ()
        foreign = max((each["usedGpuMemory"] for each in processes if each["pid"] == 0), default=0)
        seen = total > 0 and foreign >= _ALMOST * undo["share"] * total
        return seen, f"NVML lists another process with {foreign >> 20} of {total >> 20} MiB"

    return view
