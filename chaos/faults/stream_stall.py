"""Answers fall silent in the middle: the connection stays open and no token comes, while the engine itself is well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.grips import streams
from chaos.faults.grips.choosing import by_model, by_path, by_trace, matching, share_of
from chaos.faults.grips.one_toxic import Toxic
from chaos.faults.grips.streams import StreamFault
from chaos.settings import setting
from chaos.units import Ratio


@dataclass(frozen=True)
class StreamStall(StreamFault):
    """Holds token streams in the fault proxy before a target. What is held follows at the revert."""

    kind: ClassVar[str] = "stream_stall"
    summary: ClassVar[str] = "Token streams of the target fall silent on open connections; the target itself is well."
    fidelity: ClassVar[str] = "HTTP stream"
    observer: ClassVar[str] = (
        "the observer's own stream through the edge falls silent, a direct one is whole, and the proxy has counted hits"
    )
    endings: ClassVar[frozenset[streams.Ending]] = frozenset({"silent"})

    after_events: int = setting(
        "events that pass first; 0 is silence before the first token", default=4, least=0, most=500
    )
    share: Ratio = share_of("the streams that fall silent")
    path: str | None = by_path()
    model: str | None = by_model()
    trace: str | None = by_trace()

    def toxic(self) -> Toxic:
        """The silence lasts until the revert."""
        attributes = {"after_events": self.after_events, **matching(self.path, self.model, self.trace)}
        return Toxic("sse_stall", attributes, float(self.share))
