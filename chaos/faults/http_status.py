"""Requests are answered with an error before they reach the target, which is well and hears nothing of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from chaos.faults.fault import Undo
from chaos.faults.grips.choosing import by_model, by_path, by_trace, matching, share_of
from chaos.faults.grips.one_toxic import Toxic
from chaos.faults.grips.requests import Heard, RequestFault
from chaos.inventory import Target
from chaos.ports import Host
from chaos.settings import setting
from chaos.units import Duration, Ratio


@dataclass(frozen=True)
class HttpStatus(RequestFault):
    """Answers in the fault proxy before a target."""

    kind: ClassVar[str] = "http_status"
    summary: ClassVar[str] = "Requests to the target get an error status at once; the target itself is well."
    fidelity: ClassVar[str] = "HTTP"
    observer: ClassVar[str] = (
        "the observer's own request through the edge gets the status, a direct one is served, and the proxy counts hits"
    )

    status: int = setting("status of the answers", default=503, least=400, most=599)
    retry_after: Duration | None = setting(
        "Retry-After of the answers, whole seconds; default none", default=None, least=1, most=3600
    )
    share: Ratio = share_of("the requests that are answered so")
    path: str | None = by_path(", health checks too")
    model: str | None = by_model()
    trace: str | None = by_trace()

    def toxic(self) -> Toxic:
        """Whole seconds."""
        attributes = {
            "status": self.status,
            "retry_after": None if self.retry_after is None else round(self.retry_after),
            **matching(self.path, self.model, self.trace),
        }
        return Toxic("http_status", attributes, float(self.share))

    async def expected(self, _targets: tuple[Target, ...], _host: Host, /) -> Mapping[str, Any]:
        """The status."""
        return {"status": self.status}

    def harmed(self, via: Heard, direct: Heard, undo: Undo) -> bool:
        """The very status."""
        del direct
        return bool(via.reply.status == undo["status"])
