"""A path between prefill and decode becomes a black hole: whoever fetches KV blocks over it waits without an end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.fault import Undo
from chaos.faults.grips.kv_paths import FIDELITY, Path, paths_of, which_path, without_path
from chaos.faults.net_timeout import NetTimeout
from chaos.inventory import Target
from chaos.ports import Host


@dataclass(frozen=True)
class KvTransferTimeout(NetTimeout):
    """Swallows bytes on the listener before a path."""

    kind: ClassVar[str] = "kv_transfer_timeout"
    summary: ClassVar[str] = "KV blocks, or the meeting of peers, vanish on connections that stay open: a black hole."
    fidelity: ClassVar[str] = FIDELITY
    observer: ClassVar[str] = (
        "the observer's own talk on the path through the edge is accepted and never answered, a direct one is"
    )

    path: Path = which_path()

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target must have the path, with a proxy before it."""
        return without_path(targets, self.path) or super().problems(paths_of(targets, self.path))

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """As on any edge. Raises CannotInject."""
        return await super().prepare(paths_of(targets, self.path), host)
