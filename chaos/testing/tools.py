"""Tools over MCP on the addresses of an in-memory stack: a listing, calls that are audited, and sessions.

The toxics on tool calls act here as the real proxy's do on a request that names them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from chaos.ports import HttpReply
from chaos.testing.harmed import lost
from chaos.testing.stack import reply

_SESSION = "mcp-session-id"
_ROUTES = ("POST /mcp", "DELETE /mcp", "GET /audit", "GET /tools")


@dataclass(frozen=True)
class Asked:
    """A request: method and path, what it holds, and how long its sender waits."""

    what: str
    body: Any
    headers: Mapping[str, str]
    timeout_s: float


class FakeTools:
    """Answers for every target."""

    def __init__(self) -> None:
        """Nothing was called yet."""
        self._audit: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        self._sessions: set[str] = set()

    def knows(self, what: str) -> bool:
        """Whether it is one of its routes."""
        return what in _ROUTES

    def answer(self, target: str, asked: Asked, kind: str, attributes: Mapping[str, Any]) -> HttpReply:
        """The reply, harmed by a toxic of this kind if there is one."""
        if asked.what == "GET /audit":
            entries = self._audit[target]
            return reply(200, {"entries": entries, "last": len(entries)})
        if asked.what == "GET /tools":
            return reply(200, {"tools": [{"name": "order_status"}]})
        if asked.what == "DELETE /mcp":
            self._sessions.discard(asked.headers.get(_SESSION, ""))
            return reply(200)
        match kind:
            case "mcp_error":
                result = {"isError": True, "content": [{"type": "text", "text": attributes["message"]}]}
                return reply(200, {"result": result} if attributes["form"] == "result" else {"error": {"code": -1}})
            case "mcp_lose_session":
                return reply(404, {"error": {"message": "Session not found"}})
        answered = self._serve(target, asked)
        if kind == "http_reset_mid_body":
            return lost("broken: reset by peer")
        return reply(200, {"result": {}}) if kind == "mcp_wrong_schema" else answered

    def _serve(self, target: str, asked: Asked) -> HttpReply:
        session = asked.headers.get(_SESSION)
        if session is not None and session not in self._sessions:
            return reply(404, {"error": {"message": "Session not found"}})
        match asked.body["method"]:
            case "initialize":
                self._sessions.add(f"session-{len(self._sessions)}")
                return HttpReply(200, json.dumps({"result": {}}), {_SESSION: f"session-{len(self._sessions) - 1}"})
            case "tools/call":
                trace = asked.headers.get("traceparent", "--").split("-")[1]
                self._audit[target].append({"trace_id": trace, "tool": asked.body["params"]["name"]})
        return reply(200, {"result": {"tools": []}})
