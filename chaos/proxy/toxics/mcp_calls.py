"""What the toxics on MCP share: they choose tool calls and leave handshakes, listings and health checks alone."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from chaos.proxy.toxics.per_request import PerRequest, Reply, asked_in, called_tool

JSON = "application/json"


@dataclass
class McpCalls(PerRequest):
    """Base of toxics on `tools/call`; a match on the tool narrows it further."""

    @property
    def chooses_by_body(self) -> bool:
        return True

    def matches_body(self, body: bytes) -> bool:
        return called_tool(asked_in(body)) is not None and super().matches_body(body)


def json_rpc(status: int, request: object, **said: Any) -> Reply:
    """A JSON-RPC answer to the request of this id."""
    return Reply(status, JSON, json.dumps({"jsonrpc": "2.0", "id": request, **said}).encode())
