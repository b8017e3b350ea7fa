"""Requests are answered with status 200 and a body that is no answer; health by status code sees nothing of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from chaos.faults.fault import Undo
from chaos.faults.grips.choosing import by_model, by_path, by_trace, matching, share_of
from chaos.faults.grips.one_toxic import Toxic
from chaos.faults.grips.requests import METRICS, Heard, RequestFault
from chaos.inventory import Target
from chaos.ports import Host
from chaos.settings import setting
from chaos.units import Ratio


@dataclass(frozen=True)
class HttpBody(RequestFault):
    """Answers in the fault proxy before a target."""

    kind: ClassVar[str] = "http_body"
    summary: ClassVar[str] = "Requests to the target get status 200 and a body that is no answer."
    fidelity: ClassVar[str] = "HTTP"
    observer: ClassVar[str] = (
        "the observer's own request through the edge gets the wrong body with status 200, a direct one is served, "
        "and the proxy counts hits"
    )
    question: ClassVar[str] = METRICS

    body: Literal["empty", "html", "broken_json"] = setting(
        "empty: nothing; html: a sign-in page, as portals send; broken_json: JSON that stops", default="empty"
    )
    share: Ratio = share_of("the requests that are answered so")
    path: str | None = by_path(", health checks too")
    model: str | None = by_model()
    trace: str | None = by_trace()

    def toxic(self) -> Toxic:
        """As the setting says."""
        attributes = {
            "body": self.body,
            **matching(self.path, self.model, self.trace),
        }
        return Toxic("http_body", attributes, float(self.share))

    async def expected(self, _targets: tuple[Target, ...], _host: Host, /) -> Mapping[str, Any]:
        """Which body."""
        return {"body": self.body}

    def harmed(self, via: Heard, direct: Heard, undo: Undo) -> bool:
        """A body of that kind, which a direct answer has not."""
        wanted = undo["body"]
        return via.reply.status == 200 and _kind(via.reply.body) == wanted and _kind(direct.reply.body) != wanted


def _kind(body: str) -> str:
    """What a body looks like."""
    if not body:
        return "empty"
    if body.startswith("<"):
        return "html"
    if body.startswith(("{", "[")):
        try:
            json.loads(body)
        except ValueError:
            return "broken_json"
    return "other"
