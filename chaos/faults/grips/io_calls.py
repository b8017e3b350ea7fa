"""Faults in the system calls that a running target makes on its files. Base of those; they are dataclasses of settings.

A tracer of ours (chaos/saboteurs/io_calls.py) stops every call of the target's processes and of all children they will
have. When it ends, however that happens, the kernel lets go of them and they run on.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips.grip import Grip, listed_processes
from chaos.faults.grips.needs import TRACE, X86_64
from chaos.faults.grips.saboteur import SaboteurFault
from chaos.faults.grips.sightings import every_one
from chaos.faults.grips.storage import Storage, unseen
from chaos.inventory import Target
from chaos.ports import Host, Need
from chaos.settings import setting
from chaos.units import Ratio

FIDELITY = (
    "system calls of the real process; not those by io_uring or mapped memory. While it lasts every call of its "
    "processes takes some 0.15 ms longer, whether it is hit or not; a process that is started anew is not hit"
)


@dataclass(frozen=True)
class IoFault(SaboteurFault):
    """Which calls are hit."""

    program: ClassVar[str] = "io_calls"
    needs: ClassVar[tuple[Need, ...]] = (X86_64, TRACE)

    operations: tuple[Literal["open", "read", "write", "fsync"], ...] = setting(
        "which calls are hit; write includes those that make a file longer or shorter",
        default=("open", "read", "write"),
    )
    share: Ratio = setting("how many of them", default=Ratio(1), least=0.01)
    folder: str = setting(
        "files below this are hit; if empty, below what the inventory calls the target's storage", default=""
    )

    @abstractmethod
    def harm(self) -> Mapping[str, Any]:
        """What happens to a call that is hit, as the saboteur is told."""

    @abstractmethod
    async def look(self, storage: Storage, undo: Undo, host: Host, *, harmed: bool) -> Sighting:
        """Does the target behave as one that is harmed, or as one that is well?"""

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target needs processes, files, and a way to see what became of them."""
        missing = tuple(f"{t.name}: the inventory lists no process to trace" for t in targets if not t.pids)
        return missing + tuple(why for t in targets for why in unseen(t, self.operations, self.folder))

    async def expected(self, targets: tuple[Target, ...], host: Host) -> Mapping[str, Any]:
        """Whose calls, on which files. Raises CannotInject."""
        grips = [Grip.of(target, await listed_processes(target, host)) for target in targets]
        storages = [
            Storage.of(target, grip, self.folder).to_json() for target, grip in zip(targets, grips, strict=True)
        ]
        return {"storages": storages, "operations": list(self.operations), "share": float(self.share), **self.harm()}

    def orders(self, undo: Undo) -> Mapping[str, Any]:
        """All that the undo holds, as the tracer reads it."""
        storages = _storages(undo)
        processes = [[each.pid, each.start_ticks] for storage in storages for each in storage.grip.processes]
        told = {key: undo[key] for key in ("operations", "share", *self.harm())}
        return {"processes": processes, "folders": [each.folder for each in storages], "seed": undo["mark"], **told}

    async def seen_harmed(self, undo: Undo, host: Host) -> Sighting:
        """At every target."""
        return await every_one(self.look(storage, undo, host, harmed=True) for storage in _storages(undo))

    async def seen_well(self, undo: Undo, host: Host) -> Sighting:
        """At every target."""
        return await every_one(self.look(storage, undo, host, harmed=False) for storage in _storages(undo))


def _storages(undo: Undo) -> list[Storage]:
    return [Storage.from_json(record) for record in undo["storages"]]
