"""The tools forget their sessions, as after a restart, or behind a balancer that sends a client to another instance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.fault import Undo
from chaos.faults.grips import toxics
from chaos.faults.grips.choosing import by_tool, share_of
from chaos.faults.grips.grip import ANSWER_S, Grip
from chaos.faults.grips.one_toxic import Toxic
from chaos.faults.grips.requests import Heard
from chaos.faults.grips.tool_calls import ACCEPT, MCP_PATH, ToolFault
from chaos.ports import Host
from chaos.units import Ratio

_SESSION = "mcp-session-id"
_REVISION = "2025-11-25"  # the last one with sessions
_HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": _REVISION,
        "capabilities": {},
        "clientInfo": {"name": "brownout-observer", "version": "1"},
    },
}
_LISTING = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}


@dataclass(frozen=True)
class ToolSessionDrop(ToolFault):
    """Answers requests of MCP sessions in the fault proxy. The server keeps the session, so a client that asks again
    with the old id may be lucky; one that opens a new session always gets one.
    """

    kind: ClassVar[str] = "tool_session_drop"
    summary: ClassVar[str] = "Requests that belong to an MCP session get 404, session not found; stateless ones pass."
    fidelity: ClassVar[str] = "MCP over HTTP, as the client sees it: the server still has the session"
    observer: ClassVar[str] = (
        "a request in a session of the observer's own gets 404 through the edge, is served directly, "
        "and the proxy counts hits"
    )

    tool: str | None = by_tool()
    share: Ratio = share_of("the requests in a session that find it gone")

    def toxic(self) -> Toxic:
        """By the header of the session."""
        return Toxic("mcp_lose_session", self.chosen(), float(self.share))

    def harmed(self, via: Heard, direct: Heard, undo: Undo) -> bool:
        """Not found."""
        del direct, undo
        return via.reply.status == 404

    async def both(self, grip: Grip, undo: Undo, host: Host) -> tuple[Heard, Heard]:
        """In one session, opened and ended directly. Servers that keep none take any id, or none at all."""
        home = f"http://{grip.address}{MCP_PATH}"
        hello = await host.http.call("POST", home, _HELLO, headers=ACCEPT, timeout_s=ANSWER_S)
        session = hello.headers.get(_SESSION, undo["toxic"])
        headers = {**ACCEPT, "mcp-protocol-version": _REVISION, _SESSION: session}

        async def heard(address: str) -> Heard:
            began, url = host.clock.now(), toxics.observing(address, MCP_PATH, undo["toxic"])
            reply = await host.http.call("POST", url, _LISTING, headers=headers, timeout_s=ANSWER_S)
            return Heard(reply, host.clock.now() - began)

        try:
            direct = await heard(grip.address)
            return await heard(grip.via or grip.address), direct
        finally:
            await host.http.call("DELETE", home, headers=headers, timeout_s=ANSWER_S)
