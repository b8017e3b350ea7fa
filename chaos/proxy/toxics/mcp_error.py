"""`mcp_error`: a tool call is answered with an error by the proxy; the tool never hears of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from chaos.proxy.toxics.http_status import Instead
from chaos.proxy.toxics.mcp_calls import McpCalls, json_rpc
from chaos.proxy.toxics.per_request import Harm, asked_in
from chaos.settings import setting

_INTERNAL_ERROR = -32603  # JSON-RPC 2.0, 5.1


@dataclass
class McpError(McpCalls):
    """MCP knows two errors: the tool failed (a result that the model reads), and the protocol failed (JSON-RPC)."""

    kind: ClassVar[str] = "mcp_error"
    go_name: ClassVar[str] = "McpErrorToxic"
    answers_by_body: ClassVar[bool] = True  # the answer bears the id of the request
    form: str = setting("result: a result with isError; protocol: a JSON-RPC error", default="result")
    message: str = setting("what it says", default="the tool failed")

    def problem(self) -> str | None:
        return None if self.form in ("result", "protocol") else f"form {self.form!r} is none of result, protocol"

    def harm(self) -> Harm:
        return self.harm_to(b"")

    def harm_to(self, body: bytes, /) -> Harm:
        return Instead(json_rpc(200, asked_in(body).get("id"), **self._said()))

    def _said(self) -> Mapping[str, Any]:
        if self.form == "protocol":
            return {"error": {"code": _INTERNAL_ERROR, "message": self.message}}
        return {"result": {"content": [{"type": "text", "text": self.message}], "isError": True}}
