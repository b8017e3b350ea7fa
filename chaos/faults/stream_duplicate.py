"""One event of an answer comes twice, as from a hop that repeats a write."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.fault import Undo
from chaos.faults.grips import streams
from chaos.faults.grips.choosing import by_model, by_path, by_trace, matching, share_of
from chaos.faults.grips.one_toxic import Toxic
from chaos.faults.grips.streams import Stream, StreamFault
from chaos.settings import setting
from chaos.units import Ratio


@dataclass(frozen=True)
class StreamDuplicate(StreamFault):
    """Doubles one event in the fault proxy before a target."""

    kind: ClassVar[str] = "stream_duplicate"
    summary: ClassVar[str] = "One event of each token stream comes twice; the target itself is well."
    fidelity: ClassVar[str] = "HTTP stream"
    observer: ClassVar[str] = (
        "the observer's own stream through the edge has an event twice that a direct one has once, and the proxy "
        "has counted hits"
    )
    endings: ClassVar[frozenset[streams.Ending]] = frozenset({"whole"})

    after_events: int = setting("events that pass before the one that comes twice", default=4, least=0, most=500)
    share: Ratio = share_of("the streams that have one event twice")
    path: str | None = by_path()
    model: str | None = by_model()
    trace: str | None = by_trace()

    def toxic(self) -> Toxic:
        """One event."""
        attributes = {"after_events": self.after_events, **matching(self.path, self.model, self.trace)}
        return Toxic("sse_duplicate", attributes, float(self.share))

    def harmed(self, via: Stream, direct: Stream, undo: Undo) -> bool:
        """More doubles than the answer has by itself: a model may say a word twice."""
        del undo
        return via.doubles > direct.doubles
