"""Answers break off in the middle: the tokens stop and the connection ends, while the engine itself is well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from chaos.faults.grips import streams
from chaos.faults.grips.choosing import by_model, by_path, by_trace, matching, share_of
from chaos.faults.grips.one_toxic import Toxic
from chaos.faults.grips.streams import StreamFault
from chaos.settings import setting
from chaos.units import Ratio


@dataclass(frozen=True)
class StreamCut(StreamFault):
    """Cuts token streams in the fault proxy before a target."""

    kind: ClassVar[str] = "stream_cut"
    summary: ClassVar[str] = "Token streams of the target break off after some events; the target itself is well."
    fidelity: ClassVar[str] = "HTTP stream"
    observer: ClassVar[str] = (
        "the observer's own stream through the edge breaks off, a direct one is whole, and the proxy has counted hits"
    )
    endings: ClassVar[frozenset[streams.Ending]] = frozenset({"broken", "truncated", "failed"})

    after_events: int = setting("events that pass first; 0 cuts before the first token", default=4, least=0, most=500)
    ending: Literal["close", "reset", "clean", "error"] = setting(
        "close ends the connection inside the body, reset with RST; clean ends the body as if the answer were whole; "
        "error says that the engine has died, and then [DONE], as vLLM does",
        default="close",
    )
    share: Ratio = share_of("the streams that are cut")
    path: str | None = by_path()
    model: str | None = by_model()
    trace: str | None = by_trace()

    def toxic(self) -> Toxic:
        """`error` has a toxic of its own."""
        attributes = {"after_events": self.after_events, **matching(self.path, self.model, self.trace)}
        if self.ending == "error":
            return Toxic("sse_error_frame", attributes, float(self.share))
        return Toxic("sse_cut", {**attributes, "ending": self.ending}, float(self.share))
