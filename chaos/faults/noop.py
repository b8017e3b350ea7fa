"""The control: everything that a fault goes through, and no harm at all.

An experiment with this fault must be upheld. It leaves a marker file of its own, so that lease, inject, confirm and
revert are all exercised and nothing of the stack is touched.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips.marks import new_mark
from chaos.inventory import Target
from chaos.ports import Host, Need


@dataclass(frozen=True)
class Noop:
    """Harms nothing."""

    kind: ClassVar[str] = "noop"
    summary: ClassVar[str] = "Harms nothing: the control that every other fault is compared with."
    fidelity: ClassVar[str] = "none"
    observer: ClassVar[str] = "a read of the marker file that stands for the harm"
    needs: ClassVar[tuple[Need, ...]] = ()

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """None: any target will do, also none at all."""
        del targets
        return ()

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """Choose the marker."""
        del targets, host
        mark = new_mark(self.kind)
        return {"mark": mark, "marker": str(Path(tempfile.gettempdir()) / mark)}

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Write the marker."""
        del targets
        host.files.write_atomic(Path(undo["marker"]), undo["mark"])

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """The marker is there."""
        del targets
        seen = host.files.read(Path(undo["marker"])) == undo["mark"]
        return Sighting(seen, f"marker {undo['marker']} is {'there' if seen else 'absent'}")

    async def revert(self, undo: Undo, host: Host) -> None:
        """Remove the marker, and what is left of one whose writing was cut off."""
        marker = Path(undo["marker"])
        host.files.remove(marker)
        host.files.sweep(marker.parent, marker.name)

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """The marker is absent."""
        there = await self.confirm(targets, undo, host)
        return Sighting(not there.seen, there.what)
