"""Answers end in order, but their `[DONE]` never comes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.grips import streams
from chaos.faults.grips.choosing import by_model, by_path, by_trace, matching, share_of
from chaos.faults.grips.one_toxic import Toxic
from chaos.faults.grips.streams import StreamFault
from chaos.units import Ratio


@dataclass(frozen=True)
class StreamDropDone(StreamFault):
    """Drops `[DONE]` in the fault proxy before a target. All else, the finish reason too, is there."""

    kind: ClassVar[str] = "stream_drop_done"
    summary: ClassVar[str] = "Token streams of the target end without [DONE]; the target itself is well."
    fidelity: ClassVar[str] = "HTTP stream"
    observer: ClassVar[str] = (
        "the observer's own stream through the edge ends without [DONE], a direct one has it, and the proxy has "
        "counted hits"
    )
    endings: ClassVar[frozenset[streams.Ending]] = frozenset({"truncated"})

    share: Ratio = share_of("the streams that lose it")
    path: str | None = by_path()
    model: str | None = by_model()
    trace: str | None = by_trace()

    def toxic(self) -> Toxic:
        """No settings of its own."""
        return Toxic("sse_drop_done", matching(self.path, self.model, self.trace), float(self.share))
