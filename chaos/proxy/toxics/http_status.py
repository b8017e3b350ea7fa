"""`http_status`: a request is answered with an error by the proxy; the upstream never hears of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar

from chaos.proxy.toxics.per_request import Harm, PerRequest, Reply
from chaos.proxy.traffic.replies import phrase_of
from chaos.settings import setting


@dataclass
class HttpStatus(PerRequest):
    """The body has the form of an OpenAI error, so that clients read it as one."""

    kind: ClassVar[str] = "http_status"
    go_name: ClassVar[str] = "HttpStatusToxic"
    status: int = setting("status of the answer, 200 to 599", default=503)
    retry_after: int = setting("Retry-After of the answer, s; 0 (and less) sends none", default=0)

    def problem(self) -> str | None:
        return None if 200 <= self.status <= 599 else f"status {self.status} is not one of 200 to 599"

    def harm(self) -> Harm:
        error = {"message": phrase_of(self.status), "type": "ServiceError", "param": None, "code": self.status}
        body = b"" if self.status in (204, 304) else json.dumps({"error": error}).encode()
        headers = (("Retry-After", str(self.retry_after)),) if self.retry_after > 0 else ()
        return Instead(Reply(self.status, "application/json" if body else "", body, headers))


class Instead(Harm):
    """Answers in the upstream's place."""

    def __init__(self, reply: Reply) -> None:
        super().__init__()
        self._reply = reply

    def reply(self) -> Reply:
        return self._reply
