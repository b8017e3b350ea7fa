"""Faults that take memory or time of a GPU: of a simulated one by a condition, of a real one by a process of ours.

The target's handles decide. `device` is a GPU of the bundled stack. `cuda`, the number of a GPU, is a real one: a
saboteur takes its share of it through torch, and NVML tells. Where this machine has no NVML, the saboteur takes from
the machine what it would have taken from the GPU, the kernel tells, and the report says that no GPU was harmed.

NVML lists processes by the numbers of the host, so a saboteur in a container is not found there, and not confirmed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from chaos.faults.fault import CannotInject, Sighting, Undo
from chaos.faults.grips import consumption, devices
from chaos.faults.grips.devices import Answers, Device
from chaos.faults.grips.gpu_fault import GpuFault, known
from chaos.faults.grips.grip import Grip, grips_in, must_answer
from chaos.faults.grips.needs import module
from chaos.faults.grips.saboteur import SaboteurFault
from chaos.faults.grips.sightings import every_one
from chaos.faults.grips.streams import served_model
from chaos.inventory import Target
from chaos.ports import Host, Need
from chaos.units import Ratio

Resource = Literal["memory", "time"]
View = Callable[[Answers, Mapping[str, Any]], tuple[bool, str]]
REAL, STAND_IN = "real GPU", "CPU stand-in with torch, no GPU"
SIMULATED_TENANT = 0
"""The pid under which the bundled stack's devices list somebody else."""
_NVML_S = 5.0
_LOOK_S = 0.25
_ENOUGH = 0.15
"""Of the time that it wants: a hog shares with those whom it hinders."""
_ALMOST = 0.95
_RESERVED = 0.1
"""Of the machine's memory: a stand-in never drives strangers into the arms of the kernel's killer."""


async def nvml(gpu: int, host: Host) -> Answers | None:
    """NVML's answers about a GPU of this machine; None where there is no NVML or no such GPU."""
    ran = await host.programs.look([sys.executable, "-m", "chaos.adapters.nvml", str(gpu)], timeout_s=_NVML_S)
    return dict(json.loads(ran.output)) if ran.status == 0 else None


class HogFault(GpuFault):
    """Base of the faults; they are frozen dataclasses of settings, one of them `share`."""

    resource: ClassVar[Resource]
    fidelity: ClassVar[str] = (
        f"{devices.FIDELITY}; with the handle `cuda` a {REAL}, or where there is none a {STAND_IN}"
    )
    needs_with: ClassVar[Mapping[str, tuple[Need, ...]]] = {"cuda": (module("torch", "gpu"), module("pynvml", "gpu"))}
    share: Ratio

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """All have a simulated GPU, or all have a real one."""
        real = [target.name for target in targets if _is_real(target)]
        if not real:
            return super().problems(targets)
        others = [target.name for target in targets if target.name not in real]
        if others:
            return (
                f"{', '.join(real)} have real GPUs and {', '.join(others)} have not; harm them one after the other",
            )
        return ()

    def hog(self) -> TorchHog:
        """The saboteur in this fault's place. On a bare fault it still observes, reverts and sees all well."""
        return TorchHog(self.resource, float(getattr(self, "share", 0.0)), self.in_nvml)

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """Whose GPU it is decides. Raises CannotInject."""
        if any(map(_is_real, targets)):
            return await self.hog().prepare(targets, host)
        return {**await super().prepare(targets, host), "fidelity": devices.FIDELITY}

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Start the saboteur, or bring the condition about. Raises CannotInject."""
        await (self.hog().inject if "warrant" in undo else super().inject)(targets, undo, host)

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """The observer sees the harm on each GPU."""
        return await (self.hog().confirm if "warrant" in undo else super().confirm)(targets, undo, host)

    async def revert(self, undo: Undo, host: Host) -> None:
        """End the saboteur, or take the condition away. Raises RevertFailed."""
        await (self.hog().revert if "warrant" in undo else super().revert)(undo, host)

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """Nothing of it is left, and each target completes again."""
        return await (self.hog().confirm_gone if "warrant" in undo else super().confirm_gone)(targets, undo, host)


@dataclass(frozen=True)
class TorchHog(SaboteurFault):
    """A process that takes `share` of a resource of each target's GPU. `view` reads NVML."""

    kind: ClassVar[str] = "torch_hog"
    program: ClassVar[str] = "torch_hog"
    starts_within_s: ClassVar[float] = 60.0  # importing torch from a cold disk
    resource: Resource
    share: float
    view: View

    def orders(self, undo: Undo) -> Mapping[str, Any]:
        """What to take, and of which GPUs."""
        gpus = [record["cuda"] for record in undo["targets"]] if undo["fidelity"] == REAL else []
        more = {name: undo[name] for name in ("bytes", "reserve") if name in undo}
        return {"resource": self.resource, "share": undo["share"], "gpus": gpus, **more}

    async def expected(self, targets: tuple[Target, ...], host: Host) -> Mapping[str, Any]:
        """The GPUs, what their targets do when all is well, and whether they are there. Raises CannotInject."""
        records, seen = [], []
        for target in targets:
            await must_answer(target, host)
            gpu = int(target.handles["cuda"])
            seen.append(await nvml(gpu, host) is not None)
            device = Device("", "", Grip.of(target), await served_model(target, host))
            before = {"pace_s": await device.pace_s(host, times=3)}
            records.append({**device.grip.to_json(), "cuda": gpu, "model": device.model, "before": before})
        if any(seen) and not all(seen):
            raise CannotInject("NVML knows some of these GPUs and others not; look at the handles `cuda`")
        stand_in = {} if all(seen) else self._of_the_machine(host)
        return {"targets": records, "share": self.share, "fidelity": REAL if all(seen) else STAND_IN, **stand_in}

    async def seen_harmed(self, undo: Undo, host: Host) -> Sighting:
        """NVML lists the saboteur with what it takes; the kernel does where there is no GPU."""
        found = await (self._on_gpus(undo, host) if undo["fidelity"] == REAL else self._on_machine(undo, host))
        paces = [await _pace(device, host) for _, device in _gpus_in(undo)]
        return Sighting(found.seen, "; ".join((f"{undo['fidelity']}: {found.what}", *paces)))

    async def seen_well(self, undo: Undo, host: Host) -> Sighting:
        """NVML lists it no longer, and each target answers."""
        if undo["fidelity"] == REAL and (found := await self._on_gpus(undo, host)).seen:
            return Sighting(seen=False, what=found.what)
        return await every_one(_completes(device, host) for _, device in _gpus_in(undo))

    async def _on_gpus(self, undo: Undo, host: Host) -> Sighting:
        pids = [process.pid for process in host.processes.with_argument(undo["warrant"])]
        return await every_one(self._on_gpu(gpu, device, undo, pids, host) for gpu, device in _gpus_in(undo))

    async def _on_gpu(self, gpu: int, device: Device, undo: Undo, pids: list[int], host: Host) -> Sighting:
        answers = await nvml(gpu, host)
        if answers is None:
            return Sighting(seen=False, what=f"{device.grip.name}: NVML does not answer")
        seen, what = self.view(answers, {**known(device, undo), "tenants": pids})
        return Sighting(seen, f"{device.grip.name}: cuda:{gpu}: {what}")

    async def _on_machine(self, undo: Undo, host: Host) -> Sighting:
        if self.resource == "memory":
            held = consumption.resident(undo["warrant"], host)
            told = f"it holds {held >> 20} of {undo['bytes'] >> 20} MiB of the machine's memory"
            return Sighting(held >= _ALMOST * undo["bytes"], told)
        used = await consumption.cores_used(undo["warrant"], _LOOK_S, host)
        return Sighting(
            used >= _ENOUGH * undo["share"], f"it runs on {used:.2f} cores, {undo['share']:.0%} of the time"
        )

    def _of_the_machine(self, host: Host) -> Mapping[str, Any]:
        """How much memory the stand-in takes: its share of what is free beyond a reserve. Raises CannotInject."""
        if self.resource == "time":
            return {}
        total, free = (consumption.meminfo(name, host.files) for name in ("MemTotal", "MemAvailable"))
        reserve = round(total * _RESERVED)
        if free <= reserve:
            raise CannotInject(f"only {free >> 20} MiB of memory are free, and {reserve >> 20} are never taken")
        return {"bytes": round((free - reserve) * self.share), "reserve": reserve}


def _is_real(target: Target) -> bool:
    return target.handles.get("cuda") is not None


def _gpus_in(undo: Undo) -> Iterator[tuple[int, Device]]:
    for record, grip in zip(undo["targets"], grips_in(undo), strict=True):
        yield record["cuda"], Device("", "", grip, record["model"], record["before"])


async def _pace(device: Device, host: Host) -> str:
    """How the target feels it, in words."""
    took_s, usual_s = await device.pace_s(host), device.before["pace_s"]
    now, before = (f"{each * 1000:.0f}ms" if each is not None else "no answer" for each in (took_s, usual_s))
    return f"{device.grip.name}: the observer's own completion took {now}, {before} before"


async def _completes(device: Device, host: Host) -> Sighting:
    status = await device.completion(host)
    return Sighting(status == 200, f"{device.grip.name}: the observer's own completion got status {status}")
