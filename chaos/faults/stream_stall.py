"""Answers fall silent in the middle: the connection stays open and no token comes, while the engine itself is well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips import streams, toxics
from chaos.faults.grips.grip import grips_in, without_proxy
from chaos.faults.grips.sightings import every_one
from chaos.inventory import Target
from chaos.ports import Host
from chaos.settings import setting
from chaos.units import Ratio

_SILENT: frozenset[streams.Ending] = frozenset({"silent"})


@dataclass(frozen=True)
class StreamStall:
    """Holds token streams in the fault proxy before a target. What is held follows at the revert."""

    kind: ClassVar[str] = "stream_stall"
    summary: ClassVar[str] = "Token streams of the target fall silent on open connections; the target itself is well."
    fidelity: ClassVar[str] = "HTTP stream"
    observer: ClassVar[str] = (
        "the observer's own stream through the edge falls silent, a direct one is whole, and the proxy has counted hits"
    )

    after_events: int = setting(
        "events that pass first; 0 is silence before the first token", default=4, least=0, most=500
    )
    share: Ratio = setting("share of the streams that fall silent", default=Ratio(1))
    path: str | None = setting("only requests whose path begins so; default all", default=None)

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target needs a proxy before it and streams to hold."""
        return (*without_proxy(targets), *streams.not_streaming(targets))

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """Choose the toxic's name and learn what to ask for. Raises CannotInject."""
        undo = await toxics.prepared(self.kind, targets, host)
        models = {target.name: await streams.served_model(target, host) for target in targets}
        return {**undo, "after_events": self.after_events, "models": models}

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Add the toxic to each edge. Raises CannotInject."""
        del targets
        attributes = {"after_events": self.after_events, "match_path": self.path}
        await toxics.put(undo, "sse_stall", float(self.share), attributes, host)

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """A stream of the observer's own falls silent at each edge."""
        del targets
        return await every_one(streams.seen_ending(grip, undo, _SILENT, host) for grip in grips_in(undo))

    async def revert(self, undo: Undo, host: Host) -> None:
        """Remove the toxic from each edge: what it held follows. Raises RevertFailed."""
        await toxics.take_away(undo, host)

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """The toxic is absent and a stream is whole at each edge."""
        del targets
        return await every_one(streams.seen_whole(grip, undo, host) for grip in grips_in(undo))
