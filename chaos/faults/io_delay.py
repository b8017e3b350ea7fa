"""Calls on a target's files take longer: a disk at the end of its life, a network volume that is throttled.

A call waits before it reaches the kernel, and its thread with it, as for a slow disk: a service that writes on its
event loop serves nobody meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips.grip import ANSWER_S, Grip, family
from chaos.faults.grips.io_calls import FIDELITY, IoFault
from chaos.faults.grips.storage import Storage
from chaos.ports import Host
from chaos.settings import setting
from chaos.units import Duration

_LOOKS, _LOOK_EVERY_S = 4, 0.01
"""Shorter together than any delay."""
_CALLS = 3
"""So many in a row are waited for when they are short. One that is longer than an answer may take is caught waiting."""


@dataclass(frozen=True)
class IoDelay(IoFault):
    """Holds calls back."""

    kind: ClassVar[str] = "io_delay"
    summary: ClassVar[str] = "Opening, reading or writing a target's files takes longer, as on a disk that dies."
    fidelity: ClassVar[str] = FIDELITY
    observer: ClassVar[str] = (
        "the target, made to use its files over a connection of ours, takes at least as long as one call is held; when "
        "that is too long to wait for, the kernel shows one of its processes held in a call"
    )

    delay: Duration = setting("how long a call is held before it is made", default=Duration(0.5), least=0.1, most=60)

    def harm(self) -> Mapping[str, Any]:
        """In seconds."""
        return {"delay_s": float(self.delay)}

    async def look(self, storage: Storage, undo: Undo, host: Host, *, harmed: bool) -> Sighting:
        """It takes long, or does not."""
        grip, delay_s = storage.grip, float(undo["delay_s"])
        within_s = ANSWER_S + _CALLS * delay_s if delay_s <= ANSWER_S else ANSWER_S
        try:
            touched = await storage.touch(undo["operations"], undo["mark"], host, within_s=within_s)
        except TimeoutError:
            held = await _is_held(grip, host)
            told = "is held in a call" if held else "is not held in any call"
            return Sighting(harmed and held, f"{grip.name}: not done with its files in {within_s:g} s, and {told}")
        except OSError as problem:
            return Sighting(seen=False, what=f"{grip.name}: {grip.address} does not answer: {problem!r}")
        told = f"{grip.name}: {touched.what} in {touched.took_s * 1000:.0f} ms"
        if touched.code:
            return Sighting(seen=False, what=told)
        return Sighting(touched.took_s >= delay_s if harmed else touched.took_s < max(delay_s, ANSWER_S), told)


async def _is_held(grip: Grip, host: Host) -> bool:
    """Does one of its processes stand still under a tracer (state t), whenever one looks?"""
    held = set(family(grip.processes, host.processes))
    for _ in range(_LOOKS):
        held = {process for process in held if host.processes.state(process) == "t"}
        await host.clock.sleep_until(host.clock.now() + _LOOK_EVERY_S)
    return bool(held)
