"""Nobody gets the target's metrics any more, while it serves as ever: absent must not be taken for zero."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from chaos.faults.fault import Undo
from chaos.faults.grips.one_toxic import Toxic
from chaos.faults.grips.requests import METRICS, Heard, RequestFault
from chaos.settings import setting


@dataclass(frozen=True)
class MetricsGap(RequestFault):
    """Answers for the target's /metrics in the fault proxy before it."""

    kind: ClassVar[str] = "metrics_gap"
    summary: ClassVar[str] = "The target's /metrics fail or are empty for its callers; it serves everything else."
    fidelity: ClassVar[str] = "HTTP"
    observer: ClassVar[str] = (
        "the observer gets no page through the edge and the whole page directly, and the proxy counts hits"
    )
    question: ClassVar[str] = METRICS

    page: Literal["fails", "empty"] = setting(
        "fails answers with status 503, empty with status 200 and nothing in it", default="fails"
    )

    def toxic(self) -> Toxic:
        """An error, or a page without a word."""
        if self.page == "fails":
            return Toxic("http_status", {"status": 503, "match_path": METRICS})
        return Toxic("http_page", {"page": "", "match_path": METRICS})

    def harmed(self, via: Heard, direct: Heard, undo: Undo) -> bool:
        """Nothing to read, where there is something."""
        del undo
        missing = via.reply.status == 503 or (via.reply.status == 200 and not via.reply.body.strip())
        return missing and bool(direct.reply.body.strip())
