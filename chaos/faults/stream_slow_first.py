"""The first token is late, all others follow as they come: a slow prefill."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from chaos.faults.fault import Undo
from chaos.faults.grips import streams
from chaos.faults.grips.choosing import by_model, by_path, by_trace, matching, share_of
from chaos.faults.grips.one_toxic import Toxic
from chaos.faults.grips.streams import Stream, StreamFault
from chaos.inventory import Target
from chaos.ports import Host
from chaos.settings import setting
from chaos.units import Duration, Ratio

_ENOUGH_S = 1.0  # a stream that is later than this need not be waited for


@dataclass(frozen=True)
class StreamSlowFirst(StreamFault):
    """Holds the first event in the fault proxy before a target."""

    kind: ClassVar[str] = "stream_slow_first"
    summary: ClassVar[str] = "The first event of each token stream is late; the target itself is well."
    fidelity: ClassVar[str] = "HTTP stream"
    observer: ClassVar[str] = (
        "the observer's own stream through the edge ends later than a direct one, and the proxy has counted hits"
    )
    endings: ClassVar[frozenset[streams.Ending]] = frozenset({"whole", "silent"})

    # A shorter delay drowns in what a busy engine adds.
    delay: Duration = setting("wait between the head of an answer and its first event", least=0.1, most=600)
    share: Ratio = share_of("the streams that begin late")
    path: str | None = by_path()
    model: str | None = by_model()
    trace: str | None = by_trace()

    def toxic(self) -> Toxic:
        """Milliseconds."""
        attributes = {"delay": round(self.delay * 1000), **matching(self.path, self.model, self.trace)}
        return Toxic("sse_slow_first", attributes, float(self.share))

    async def expected(self, targets: tuple[Target, ...], host: Host, /) -> Mapping[str, Any]:
        """How much later a stream ends at least: half of the delay, or enough."""
        return {**await super().expected(targets, host), "later_s": min(float(self.delay) / 2, _ENOUGH_S)}

    def harmed(self, via: Stream, direct: Stream, undo: Undo) -> bool:
        """Late; one that has not ended yet is late too."""
        return bool(via.took_s - direct.took_s >= undo["later_s"])
