"""A path between prefill and decode is closed: KV blocks cannot be fetched, or peers cannot meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.fault import Undo
from chaos.faults.grips.kv_paths import FIDELITY, Path, paths_of, which_path, without_path
from chaos.faults.net_down import NetDown
from chaos.inventory import Target
from chaos.ports import Host


@dataclass(frozen=True)
class KvTransferRefused(NetDown):
    """Turns the listener before a path off. Peers that have met already need no side channel."""

    kind: ClassVar[str] = "kv_transfer_refused"
    summary: ClassVar[str] = (
        "Decode engines are refused where they fetch KV blocks, or where they meet the prefill engine."
    )
    fidelity: ClassVar[str] = FIDELITY
    observer: ClassVar[str] = "a connect to the path through the edge is refused while a direct connect is accepted"

    path: Path = which_path()

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target must have the path, with a proxy before it."""
        return without_path(targets, self.path) or super().problems(paths_of(targets, self.path))

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """As on any edge. Raises CannotInject."""
        return await super().prepare(paths_of(targets, self.path), host)
