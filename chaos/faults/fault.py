"""What every fault promises.

A fault is a small frozen value: its fields are its settings, its verbs change and observe the world through the ports.

    prepare ──► (undo written to disk by the lease) ──► inject ──► confirm ──► revert ──► confirm_gone
     reads          before anything is touched           harms      who saw it?   undoes     who saw it go?

`undo` is JSON: all that a process which never saw the inject needs to revert. `revert` is safe to repeat, safe without
an inject, and must not depend on the harness being alive. The runner never asks which fault it holds.

A fault must be seen within 3 s (or a tenth of its life) after its inject, else its run is inconclusive. One whose harm
is under way before it can be proved, such as a drain, has a property `shows_within_s` that says how long that may take.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from chaos.inventory import Target
from chaos.ports import Host, Need

Undo = Mapping[str, Any]


class CannotInject(Exception):
    """The target is in no state to be harmed this way (already dead, not reachable); the message says which and why."""


class RevertFailed(Exception):
    """The harm may still be in place. The message holds the command that undoes it by hand."""


@dataclass(frozen=True)
class Sighting:
    """One look by an independent observer: did it see the harm, and what exactly did it see?"""

    seen: bool
    what: str


class Fault(Protocol):
    """One kind of harm with its settings. Kind, file and class are the same word: `process_kill`, `ProcessKill`."""

    kind: ClassVar[str]
    summary: ClassVar[str]  # one sentence for the catalog
    fidelity: ClassVar[str]  # which layer is really broken: process, network, ...
    observer: ClassVar[str]  # who confirms it, in one sentence
    needs: ClassVar[tuple[Need, ...]]  # what it cannot do without on the machine, beyond its targets

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """Why these targets cannot be harmed this way (a missing handle, ...). Pure; asked while planning."""
        ...

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """Read what `revert` will need. Changes nothing. Raises CannotInject."""
        ...

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Harm. May be cut off at any await and by SIGKILL; `revert` must then still work. Raises CannotInject."""
        ...

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """Is the harm there now? By another way than the one that injected it. Changes nothing."""
        ...

    async def revert(self, undo: Undo, host: Host) -> None:
        """Undo. Idempotent. Raises RevertFailed with the manual command."""
        ...

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """`seen` is True when the observer sees that the target works again."""
        ...
