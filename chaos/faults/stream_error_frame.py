"""An answer ends with an error frame after its status 200, as when an engine core dies in the middle of it."""

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
class StreamErrorFrame(StreamFault):
    """Ends token streams with an error in the fault proxy before a target."""

    kind: ClassVar[str] = "stream_error_frame"
    summary: ClassVar[str] = (
        "Token streams of the target say after some events that the engine has failed; the target itself is well."
    )
    fidelity: ClassVar[str] = "HTTP stream"
    observer: ClassVar[str] = (
        "the observer's own stream through the edge holds an error, a direct one is whole, and the proxy has "
        "counted hits"
    )
    endings: ClassVar[frozenset[streams.Ending]] = frozenset({"failed"})

    after_events: int = setting("events that pass before the error", default=4, least=0, most=500)
    share: Ratio = share_of("the streams that fail")
    path: str | None = by_path()
    model: str | None = by_model()
    trace: str | None = by_trace()

    def toxic(self) -> Toxic:
        """The frame and the [DONE] behind it are vLLM's."""
        attributes = {"after_events": self.after_events, **matching(self.path, self.model, self.trace)}
        return Toxic("sse_error_frame", attributes, float(self.share))
