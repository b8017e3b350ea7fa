"""`mcp_lose_session`: a request that belongs to an MCP session is told that there is no such session."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.proxy.toxics.http_status import Instead
from chaos.proxy.toxics.mcp_calls import json_rpc
from chaos.proxy.toxics.per_request import Harm, PerRequest
from chaos.proxy.traffic.messages import Head
from chaos.settings import setting

_SESSION = "mcp-session-id"
_INVALID_REQUEST = -32600  # JSON-RPC 2.0, 5.1; what the official SDK sends


@dataclass
class McpLoseSession(PerRequest):
    """404, as a server says it that was started anew. What opens a session has no id yet, and passes (MCP, transports,
    session management).
    """

    kind: ClassVar[str] = "mcp_lose_session"
    go_name: ClassVar[str] = "McpLoseSessionToxic"
    message: str = setting("what it says", default="Session not found")

    def matches(self, request: Head) -> bool:
        return _SESSION in request.headers and super().matches(request)

    def harm(self) -> Harm:
        return Instead(json_rpc(404, None, error={"code": _INVALID_REQUEST, "message": self.message}))
