"""`http_body`: a request is answered with status 200 and a body that is no answer; the upstream never hears of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.proxy.toxics.http_status import Instead
from chaos.proxy.toxics.per_request import Harm, PerRequest, Reply
from chaos.settings import setting

_JSON = "application/json"
_REPLIES = {
    "empty": Reply(200, _JSON),
    "html": Reply(
        200, "text/html; charset=utf-8", b"<!doctype html><title>Sign in</title><h1>Sign in to continue</h1>\n"
    ),
    "broken_json": Reply(
        200, _JSON, b'{"id": "chatcmpl-0", "object": "chat.completion", "choices": [{"index": 0, "mess'
    ),
}


@dataclass
class HttpBody(PerRequest):
    """Health by status code alone sees nothing of it."""

    kind: ClassVar[str] = "http_body"
    go_name: ClassVar[str] = "HttpBodyToxic"
    body: str = setting(
        "empty: nothing; html: a sign-in page, as portals send; broken_json: JSON that stops", default="empty"
    )

    def problem(self) -> str | None:
        return None if self.body in _REPLIES else f"body {self.body!r} is none of {', '.join(_REPLIES)}"

    def harm(self) -> Harm:
        return Instead(_REPLIES[self.body])
