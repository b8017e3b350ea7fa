"""Answers break off in the middle: the tokens stop and the connection ends, while the engine itself is well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips import streams, toxics
from chaos.faults.grips.grip import grips_in, without_proxy
from chaos.faults.grips.sightings import every_one
from chaos.inventory import Target
from chaos.ports import Host
from chaos.settings import setting
from chaos.units import Ratio

_CUT: frozenset[streams.Ending] = frozenset({"broken", "truncated", "failed"})


@dataclass(frozen=True)
class StreamCut:
    """Cuts token streams in the fault proxy before a target."""

    kind: ClassVar[str] = "stream_cut"
    summary: ClassVar[str] = "Token streams of the target break off after some events; the target itself is well."
    fidelity: ClassVar[str] = "HTTP stream"
    observer: ClassVar[str] = (
        "the observer's own stream through the edge breaks off, a direct one is whole, and the proxy has counted hits"
    )

    after_events: int = setting("events that pass first; 0 cuts before the first token", default=4, least=0, most=500)
    ending: Literal["close", "reset", "clean", "error"] = setting(
        "close ends the connection inside the body, reset with RST; clean ends the body as if the answer were whole; "
        "error says that the engine has died, and then [DONE], as vLLM does",
        default="close",
    )
    share: Ratio = setting("share of the streams that are cut", default=Ratio(1))
    path: str | None = setting("only requests whose path begins so; default all", default=None)

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target needs a proxy before it and streams to cut."""
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
        if self.ending == "error":
            await toxics.put(undo, "sse_error_frame", float(self.share), attributes, host)
        else:
            await toxics.put(undo, "sse_cut", float(self.share), {**attributes, "ending": self.ending}, host)

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """A stream of the observer's own breaks off at each edge."""
        del targets
        return await every_one(streams.seen_ending(grip, undo, _CUT, host) for grip in grips_in(undo))

    async def revert(self, undo: Undo, host: Host) -> None:
        """Remove the toxic from each edge. Raises RevertFailed."""
        await toxics.take_away(undo, host)

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """The toxic is absent and a stream is whole at each edge."""
        del targets
        return await every_one(streams.seen_whole(grip, undo, host) for grip in grips_in(undo))
