"""The GPU under a target is cut into MIG instances: whoever was on it has to leave, and finds a smaller one or none.

No client may be on a GPU while its instances change, and the instances that were there are gone with their UUIDs. So a
reconfiguration ends the engine twice: when the layout changes, and when the revert restores it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips import devices
from chaos.faults.grips.devices import Answers, Device
from chaos.faults.grips.gpu_fault import GpuFault
from chaos.ports import Host
from chaos.settings import setting


@dataclass(frozen=True)
class GpuMigReconfigure(GpuFault):
    """Changes the MIG layout of a target's GPU."""

    kind: ClassVar[str] = "gpu_mig_reconfigure"
    summary: ClassVar[str] = (
        "The MIG layout of the target's GPU changes under it: its engine loses the device and comes back to a smaller "
        "instance, or to none."
    )
    observer: ClassVar[str] = (
        "NVML tells MIG mode and that instance, or none, and no longer lists the processes that were on the GPU before"
    )

    profile: Literal["1g.6gb", "2g.12gb", "4g.24gb"] = setting(
        "the instance that is left for the engine: a quarter, half, or all of the GPU; a quarter holds no KV cache for "
        "one full request of the bundled engines, so that they do not start on it",
        default="2g.12gb",
    )
    stuck: bool = setting("true: the reconfiguration never ends, so that there is no instance at all", default=False)

    def condition(self) -> Mapping[str, Any]:
        """This layout."""
        return {"kind": "mig", "profile": self.profile, "stuck": self.stuck}

    def expected(self) -> Mapping[str, Any]:
        """Which instances there will be."""
        return {"profiles": [] if self.stuck else [self.profile]}

    async def before(self, device: Device, answers: Answers, host: Host) -> Mapping[str, Any]:
        """Who is on the GPU now."""
        del device, host
        return {"clients": list(_clients(answers))}

    def in_nvml(self, answers: Answers, known: Mapping[str, Any]) -> tuple[bool, str]:
        """NVML shows the layout, and nobody who was there before."""
        mode = (devices.value(answers, "nvmlDeviceGetMigMode") or {}).get("current", 0)
        instances = devices.value(answers, "nvmlDeviceGetGpuInstances") or ()
        profiles = [each["profile"] for each in instances]
        left = [pid for pid in _clients(answers) if pid in known["clients"]]
        what = f"NVML tells MIG mode {mode}, instances: {', '.join(profiles) or 'none'}"
        still = f"; {', '.join(map(str, left))} still on the GPU" if left else ""
        return mode == 1 and profiles == known["profiles"] and not left, what + still

    async def seen_harmed(self, device: Device, undo: Undo, host: Host) -> Sighting:
        """An idle engine learns of it with its next step, so give it one to do before the look."""
        await device.completion(host)
        return await super().seen_harmed(device, undo, host)


def _clients(answers: Answers) -> tuple[int, ...]:
    """The processes on the GPU, as NVML lists them."""
    listed = devices.value(answers, "nvmlDeviceGetComputeRunningProcesses") or ()
    return tuple(each["pid"] for each in listed)
