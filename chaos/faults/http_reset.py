"""Replies are lost: the target does what it was asked for, and the connection is reset before its answer arrives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.fault import Undo
from chaos.faults.grips.choosing import by_model, by_path, by_trace, matching, share_of
from chaos.faults.grips.one_toxic import Toxic
from chaos.faults.grips.requests import METRICS, Heard, RequestFault
from chaos.settings import setting
from chaos.units import Ratio


@dataclass(frozen=True)
class HttpReset(RequestFault):
    """Resets connections in the fault proxy before a target, inside the answer."""

    kind: ClassVar[str] = "http_reset"
    summary: ClassVar[str] = "The target does what it is asked, and its answers are lost to a reset connection."
    fidelity: ClassVar[str] = "HTTP"
    observer: ClassVar[str] = (
        "the observer's own request through the edge is reset, a direct one is served, and the proxy has counted hits"
    )
    question: ClassVar[str] = METRICS  # only a body can be cut

    after_bytes: int = setting("bytes of the answer's body that pass before the reset", default=0, least=0)
    share: Ratio = share_of("the answers that are lost")
    path: str | None = by_path(", health checks too")
    model: str | None = by_model()
    trace: str | None = by_trace()

    def toxic(self) -> Toxic:
        """Bytes of the body."""
        attributes = {
            "after_bytes": self.after_bytes,
            **matching(self.path, self.model, self.trace),
        }
        return Toxic("http_reset_mid_body", attributes, float(self.share))

    def harmed(self, via: Heard, direct: Heard, undo: Undo) -> bool:
        """Broken off."""
        del direct, undo
        return via.reply.status == 0 and (via.reply.error or "").startswith("broken")
