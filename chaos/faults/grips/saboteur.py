"""Faults that are a process of ours which does harm by being there. All their verbs stand here.

A fault says which program it is (`program`) and with which orders (`orders`), what its observer must know (`expected`),
and how the observer tells harm from health (`seen_harmed`, `seen_well`), which look at the undo alone. Harm that a
saboteur would leave behind when it is killed is taken away in `clean`, by undo alone and as often as one likes.
"""

from __future__ import annotations

import json
import signal as signals
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from chaos.faults.fault import CannotInject, RevertFailed, Sighting, Undo
from chaos.faults.grips.marks import new_mark
from chaos.inventory import Target
from chaos.ports import Host, Need


class SaboteurFault(ABC):
    """Base of the faults; they are frozen dataclasses of settings."""

    kind: ClassVar[str]
    program: ClassVar[str]
    needs: ClassVar[tuple[Need, ...]] = ()
    starts_within_s: ClassVar[float] = 10.0

    @abstractmethod
    def orders(self, undo: Undo) -> Mapping[str, Any]:
        """What the saboteur has to do, as JSON: from the settings and from what `expected` has learnt."""

    @abstractmethod
    async def seen_harmed(self, undo: Undo, host: Host) -> Sighting:
        """Does the observer see the harm now?"""

    @abstractmethod
    async def seen_well(self, undo: Undo, host: Host) -> Sighting:
        """Does the observer see that all is well, whatever became of the saboteur? Works on a bare fault."""

    async def expected(self, _targets: tuple[Target, ...], _host: Host, /) -> Mapping[str, Any]:
        """What orders, observer and revert must know. Raises CannotInject."""
        return {}

    async def clean(self, _undo: Undo, _host: Host, /) -> None:
        """Take away what a killed saboteur leaves behind. Idempotent. Raises RevertFailed."""
        return

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """Choose the warrant. Raises CannotInject."""
        mark = new_mark(self.kind)
        return {
            "mark": mark,
            "warrant": str(Path(tempfile.gettempdir()) / mark),
            **await self.expected(targets, host),
        }

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Write the warrant and start the saboteur on it. Raises CannotInject."""
        del targets
        host.files.write_atomic(Path(undo["warrant"]), json.dumps(self.orders(undo)))
        ran = await host.programs.sabotage(self.program, Path(undo["warrant"]), timeout_s=self.starts_within_s)
        if ran.status != 0:
            raise CannotInject(f"{self.kind}: {ran.errors.strip() or f'its saboteur ended with status {ran.status}'}")

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """The observer sees the harm."""
        del targets
        return await self.seen_harmed(undo, host)

    async def revert(self, undo: Undo, host: Host) -> None:
        """Remove the warrant, kill whoever acts on it, and clean up. Raises RevertFailed."""
        warrant = Path(undo["warrant"])
        host.files.remove(warrant)
        host.files.sweep(warrant.parent, warrant.name)
        for process in host.processes.with_argument(undo["warrant"]):
            try:
                host.processes.signal(process, signals.SIGKILL)
            except PermissionError:
                raise RevertFailed(
                    f"not allowed to end saboteur {process.pid}; by hand: sudo kill -KILL {process.pid}"
                ) from None
        await self.clean(undo, host)

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """No saboteur acts on the warrant, and the observer sees that all is well."""
        del targets
        left = host.processes.with_argument(undo["warrant"])
        if left or host.files.read(Path(undo["warrant"])) is not None:
            pids = ", ".join(str(process.pid) for process in left) or "none, but its warrant is there"
            return Sighting(seen=False, what=f"saboteurs of {undo['mark']}: {pids}")
        return await self.seen_well(undo, host)
