"""`http_page`: a request is answered with status 200 and a given text; the upstream never hears of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.proxy.toxics.http_status import Instead
from chaos.proxy.toxics.per_request import Harm, PerRequest, Reply
from chaos.settings import setting


@dataclass
class HttpPage(PerRequest):
    """A page that was true once is the answer of a cache that nobody empties."""

    kind: ClassVar[str] = "http_page"
    go_name: ClassVar[str] = "HttpPageToxic"
    page: str = setting("body of the answer; empty for none", default="")
    content_type: str = setting("its Content-Type", default="text/plain; charset=utf-8")

    def problem(self) -> str | None:
        odd = not self.content_type.isprintable() or not self.content_type.isascii()
        return f"content_type {self.content_type!r} is no header" if odd else None

    def harm(self) -> Harm:
        return Instead(Reply(200, self.content_type, self.page.encode()))
