"""Faults that are one condition of the GPU under each target. All their verbs stand here.

A fault says which condition it is (`condition`), what its observer must know (`expected`, and `before` of each GPU),
and how the harm shows: in NVML's answers (`in_nvml`), or beyond them (`seen_harmed`). Both look at the undo alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips import devices
from chaos.faults.grips.devices import Answers, Device
from chaos.faults.grips.sightings import every_one
from chaos.inventory import Target
from chaos.ports import Host, Need


class GpuFault(ABC):
    """Base of the faults; they are frozen dataclasses of settings."""

    kind: ClassVar[str]
    needs: ClassVar[tuple[Need, ...]] = ()
    fidelity: ClassVar[str] = devices.FIDELITY

    @abstractmethod
    def condition(self) -> Mapping[str, Any]:
        """As the settings say, in the words of the device process."""

    @abstractmethod
    def in_nvml(self, answers: Answers, known: Mapping[str, Any]) -> tuple[bool, str]:
        """Do these answers show the harm, and what exactly do they say? `known` is what `expected` and `before` gave.
        Works on a bare fault.
        """

    def expected(self) -> Mapping[str, Any]:
        """What the observer must know, beside the condition's name."""
        return {}

    async def before(self, device: Device, answers: Answers, host: Host) -> Mapping[str, Any]:
        """What the observer must know of one GPU, beside its names. Changes nothing."""
        del device, answers, host
        return {}

    async def seen_harmed(self, device: Device, undo: Undo, host: Host) -> Sighting:
        """Does the observer see the harm on this GPU now?"""
        return await devices.seen_by_nvml(device, lambda answers: self.in_nvml(answers, known(device, undo)), host)

    async def seen_well(self, device: Device, undo: Undo, host: Host) -> Sighting:
        """Is our condition gone from this GPU, does nothing show the harm, and does its target answer?"""
        return await devices.seen_well(device, undo, lambda answers: self.in_nvml(answers, known(device, undo)), host)

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target needs a GPU."""
        return devices.without_device(targets)

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """Choose the condition's name and learn what to ask for. Raises CannotInject."""
        return {**await devices.prepared(self.kind, targets, self.before, host), **self.expected()}

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Bring the condition about. Raises CannotInject."""
        del targets
        await devices.put(undo, self.condition(), host)

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """The observer sees the harm on each GPU."""
        del targets
        return await every_one(self.seen_harmed(device, undo, host) for device in devices.devices_in(undo))

    async def revert(self, undo: Undo, host: Host) -> None:
        """Take the condition away, which resets the GPU. Raises RevertFailed."""
        await devices.take_away(undo, host)

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """The condition is absent and each target completes again."""
        del targets
        return await every_one(self.seen_well(device, undo, host) for device in devices.devices_in(undo))


def known(device: Device, undo: Undo) -> Mapping[str, Any]:
    """What was expected of all GPUs and noted of this one."""
    return {**undo, **device.before}
