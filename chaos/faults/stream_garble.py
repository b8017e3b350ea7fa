"""One event of an answer cannot be read; the events around it are well."""

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
class StreamGarble(StreamFault):
    """Cuts the JSON of one event in half, in the fault proxy before a target."""

    kind: ClassVar[str] = "stream_garble"
    summary: ClassVar[str] = "One event of each token stream holds half of its JSON; the target itself is well."
    fidelity: ClassVar[str] = "HTTP stream"
    observer: ClassVar[str] = (
        "an event of the observer's own stream through the edge is no JSON, a direct stream is whole, and the "
        "proxy has counted hits"
    )
    endings: ClassVar[frozenset[streams.Ending]] = frozenset({"garbled"})

    after_events: int = setting("events that pass before the garbled one", default=4, least=0, most=500)
    share: Ratio = share_of("the streams that are garbled")
    path: str | None = by_path()
    model: str | None = by_model()
    trace: str | None = by_trace()

    def toxic(self) -> Toxic:
        """One event."""
        attributes = {"after_events": self.after_events, **matching(self.path, self.model, self.trace)}
        return Toxic("sse_garble", attributes, float(self.share))
