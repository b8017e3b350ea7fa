"""Faults on tool calls over MCP, and what their observer asks: which tools there are, and never for a deed.

The observer speaks the stateless revision of the protocol (2026-07-28), where one request stands for itself. The toxics
take calls alone, but a request that names them always, so a listing shows the harm as well as a call would.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping
from typing import Any

from chaos.faults.fault import CannotInject, Undo
from chaos.faults.grips.requests import RequestFault
from chaos.inventory import Target
from chaos.ports import Host, HttpReply
from chaos.units import Ratio

MCP_PATH = "/mcp"
_PROTOCOL = "2026-07-28"
_META = "io.modelcontextprotocol/"
_ENVELOPE = {
    f"{_META}protocolVersion": _PROTOCOL,
    f"{_META}clientInfo": {"name": "brownout-observer", "version": "1"},
    f"{_META}clientCapabilities": {},
}
ACCEPT = {"accept": "application/json, text/event-stream"}


def request(method: str, params: Mapping[str, Any]) -> tuple[dict[str, str], dict[str, Any]]:
    """Headers and body of a request that stands for itself."""
    headers = {**ACCEPT, "mcp-protocol-version": _PROTOCOL, "mcp-method": method}
    if "name" in params:
        headers["mcp-name"] = str(params["name"])
    return headers, {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": _ENVELOPE}}


class ToolFault(RequestFault):
    """Base of the faults on calls of tools."""

    question = MCP_PATH
    tool: str | None
    share: Ratio

    def obstacles(self, targets: tuple[Target, ...], /) -> tuple[str, ...]:
        """A target must serve tools."""
        return tuple(
            f"{t.name}: its role is {t.role}, so it serves no tools over MCP; choose a target of role tool"
            for t in targets
            if t.role != "tool" or t.wire != "http"
        )

    def chosen(self) -> dict[str, str | None]:
        """Which requests, as attributes of a toxic."""
        return {"match_path": MCP_PATH, "match_tool": self.tool}

    async def expected(self, targets: tuple[Target, ...], host: Host, /) -> Mapping[str, Any]:
        """Nothing; but the tool must be there, or nobody would ever be harmed. Raises CannotInject."""
        for target in targets:
            known = await _tools_of(target, host)
            if self.tool and known and self.tool not in known:
                near = difflib.get_close_matches(self.tool, known, n=1)
                hint = f"; did you mean {near[0]!r}?" if near else f"; it has {', '.join(known)}"
                raise CannotInject(f"{target.name} has no tool {self.tool!r}{hint}")
        return {}

    async def ask(self, url: str, undo: Undo, timeout_s: float, host: Host) -> HttpReply:
        """Which tools are there?"""
        del undo
        headers, body = request("tools/list", {})
        return await host.http.call("POST", url, body, headers=headers, timeout_s=timeout_s)


def result_in(reply: HttpReply) -> Mapping[str, Any] | None:
    """The result of a JSON-RPC answer, which may come as an event; None for anything else."""
    for line in reversed(reply.body.splitlines()):
        try:
            said = json.loads(line.removeprefix("data:"))
        except (ValueError, RecursionError):
            continue
        result = said.get("result") if isinstance(said, dict) else None
        return result if isinstance(result, dict) else None
    return None


async def _tools_of(target: Target, host: Host) -> tuple[str, ...]:
    """What a service of tools tells anybody on a page of its own; nothing where there is no such page."""
    reply = await host.http.call("GET", f"http://{target.address}/tools")
    if reply.status != 200:
        return ()
    return tuple(str(tool["name"]) for tool in json.loads(reply.body)["tools"])
