"""A path between prefill and decode becomes slow: every chunk of bytes is held back for a while."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.fault import Undo
from chaos.faults.grips.kv_paths import FIDELITY, Path, paths_of, which_path, without_path
from chaos.faults.net_latency import NetLatency
from chaos.inventory import Target
from chaos.ports import Host


@dataclass(frozen=True)
class KvTransferSlow(NetLatency):
    """Adds delay on the listener before a path."""

    kind: ClassVar[str] = "kv_transfer_slow"
    summary: ClassVar[str] = "KV blocks, or the meeting of peers, are delayed by a fixed time, with jitter."
    fidelity: ClassVar[str] = FIDELITY
    observer: ClassVar[str] = (
        "the observer's own round trip to the path through the edge takes longer than a direct one"
    )

    path: Path = which_path()

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target must have the path, with a proxy before it."""
        return without_path(targets, self.path) or super().problems(paths_of(targets, self.path))

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """As on any edge. Raises CannotInject."""
        return await super().prepare(paths_of(targets, self.path), host)
