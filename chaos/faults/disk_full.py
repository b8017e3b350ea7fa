"""The disk under a target's data is full: what it has it can read, and nothing can be written.

Only a folder whose size is limited is ever filled, never the machine's own disk: the inventory must name it, and the
saboteur looks for itself before it writes.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips.saboteur import SaboteurFault
from chaos.faults.grips.sightings import every
from chaos.inventory import Target
from chaos.ports import Host


@dataclass(frozen=True)
class DiskFull(SaboteurFault):
    """Fills the folder where a target keeps its data."""

    kind: ClassVar[str] = "disk_full"
    program: ClassVar[str] = "disk"
    summary: ClassVar[str] = "There is no room left where the target keeps its data: every write fails with ENOSPC."
    fidelity: ClassVar[str] = "file system (of limited size, under the target's data)"
    observer: ClassVar[str] = "a write of one block of the observer's own into the same folder meets ENOSPC"

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target needs a folder that may be filled."""
        return tuple(
            f"{t.name}: the inventory names no data folder of limited size (handle `data`: folder, limit_bytes); the "
            "bundled stack has some when it is started as root, `sudo -E brownout up`"
            for t in targets
            if not t.handles.get("data")
        )

    async def expected(self, targets: tuple[Target, ...], _host: Host, /) -> Mapping[str, Any]:
        """The folders, and the most that each can hold."""
        data = [t.handles["data"] for t in targets]
        return {
            "folders": [each["folder"] for each in data],
            "most": max((int(each["limit_bytes"]) for each in data), default=0),
        }

    def orders(self, undo: Undo) -> Mapping[str, Any]:
        """Fill them with a file of our own name."""
        return {"folders": undo["folders"], "most": undo["most"], "name": undo["mark"]}

    async def clean(self, undo: Undo, host: Host, /) -> None:
        """A saboteur that was killed leaves its files."""
        for folder in undo["folders"]:
            host.files.remove(Path(folder) / undo["mark"])

    async def seen_harmed(self, undo: Undo, host: Host) -> Sighting:
        """Nothing can be written in any of them."""
        return every([_tried(folder, (errno.ENOSPC,), host) for folder in undo["folders"]])

    async def seen_well(self, undo: Undo, host: Host) -> Sighting:
        """A block can be written again; a folder that went with its stack holds nobody back."""
        return every([_tried(folder, (0, errno.ENOENT), host) for folder in undo["folders"]])


def _tried(folder: str, wanted: tuple[int, ...], host: Host) -> Sighting:
    met = host.files.trial(Path(folder))
    return Sighting(met in wanted, f"a write in {folder}: {os.strerror(met) if met else 'it succeeds'}")
