"""Answers begin late, as behind a long queue; other requests on the same connection are in time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from chaos.faults.fault import Undo
from chaos.faults.grips.choosing import by_model, by_path, by_trace, matching, share_of
from chaos.faults.grips.grip import ANSWER_S
from chaos.faults.grips.one_toxic import Toxic
from chaos.faults.grips.requests import Heard, RequestFault
from chaos.inventory import Target
from chaos.ports import Host
from chaos.settings import setting
from chaos.units import Duration, Ratio

_ENOUGH_S = 1.0  # an answer that is later than this need not be waited for


@dataclass(frozen=True)
class HttpDelay(RequestFault):
    """Holds answers in the fault proxy before a target."""

    kind: ClassVar[str] = "http_delay"
    summary: ClassVar[str] = "Answers of the target begin late; it has done its work in time."
    fidelity: ClassVar[str] = "HTTP"
    observer: ClassVar[str] = (
        "the observer's own request through the edge is answered later than a direct one, and the proxy counts hits"
    )

    # A shorter delay drowns in what a busy machine adds.
    delay: Duration = setting("how long the head of an answer is held", least=0.05, most=600)
    share: Ratio = share_of("the answers that are late")
    path: str | None = by_path(", health checks too")
    model: str | None = by_model()
    trace: str | None = by_trace()

    def toxic(self) -> Toxic:
        """Milliseconds."""
        attributes = {
            "delay": round(self.delay * 1000),
            **matching(self.path, self.model, self.trace),
        }
        return Toxic("http_delay", attributes, float(self.share))

    async def expected(self, _targets: tuple[Target, ...], _host: Host, /) -> Mapping[str, Any]:
        """How much later an answer is at least: half of the delay, or enough."""
        return {"later_s": min(float(self.delay) / 2, _ENOUGH_S)}

    def patience_s(self, undo: Undo) -> float:
        """Long enough to tell a late answer from one in time."""
        return ANSWER_S + float(undo["later_s"])

    def harmed(self, via: Heard, direct: Heard, undo: Undo) -> bool:
        """Late; one that has not come yet is late too."""
        came = via.reply.status == 200 or (via.reply.error or "").startswith("timeout")
        return came and via.took_s - direct.took_s >= undo["later_s"]
