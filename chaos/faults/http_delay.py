"""Answers begin late, as behind a long queue; other requests on the same connection are in time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.grips.choosing import by_model, by_path, by_trace, matching, share_of
from chaos.faults.grips.one_toxic import Toxic
from chaos.faults.grips.requests import LateAnswers
from chaos.settings import setting
from chaos.units import Duration, Ratio


@dataclass(frozen=True)
class HttpDelay(LateAnswers):
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
