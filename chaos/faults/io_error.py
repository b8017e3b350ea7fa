"""Calls on a target's files fail: a disk that is broken, full, gone read-only, or a process out of file descriptors.

Only that target is told so; its files are whole, and everybody else can use them.
"""

from __future__ import annotations

import errno
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips.io_calls import FIDELITY, IoFault
from chaos.faults.grips.storage import NO_WRITES, UNAVAILABLE, Storage
from chaos.inventory import Target
from chaos.ports import Host
from chaos.settings import setting

_SQLSTATES = {"EIO": "58030", "ENOSPC": "53100", "EMFILE": "53000", "EROFS": "42501"}
"""How PostgreSQL reports them (appendix A; source, elog.c, errcode_for_file_access)."""


@dataclass(frozen=True)
class IoError(IoFault):
    """Answers calls with an errno."""

    kind: ClassVar[str] = "io_error"
    summary: ClassVar[str] = "Opening, reading or writing a target's files fails, as on a disk that is broken or full."
    fidelity: ClassVar[str] = FIDELITY
    observer: ClassVar[str] = (
        "the target itself, made to use its files over a connection of ours, says which error it met"
    )

    error: Literal["EIO", "ENOSPC", "EMFILE", "EROFS"] = setting("what a call is answered with", default="EIO")

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """PostgreSQL ends itself rather than go on after a sync that failed."""
        panics = [t.name for t in targets if t.wire == "postgres" and "fsync" in self.operations]
        return super().problems(targets) + tuple(
            f"{name}: PostgreSQL crashes when a sync fails, and its successor is not hit; leave `fsync` out"
            for name in panics
        )

    def harm(self) -> Mapping[str, Any]:
        """By number for the tracer, by name for the observer."""
        return {"errno": getattr(errno, self.error), "error": self.error}

    async def look(self, storage: Storage, undo: Undo, host: Host, *, harmed: bool) -> Sighting:
        """It tells of this error, or of none."""
        grip = storage.grip
        try:
            touched = await storage.touch(undo["operations"], undo["mark"], host)
        except OSError as problem:
            return Sighting(seen=False, what=f"{grip.name}: {grip.address} does not answer: {problem!r}")
        expected = {"postgres": _SQLSTATES[undo["error"]], "redis": NO_WRITES, "http": UNAVAILABLE}[grip.wire]
        return Sighting(touched.code == (expected if harmed else ""), f"{grip.name}: {touched.what}")
