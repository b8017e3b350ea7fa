"""The most expensive failure of a tool: the deed is done, and its answer is lost."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips.choosing import by_tool, share_of
from chaos.faults.grips.grip import Grip
from chaos.faults.grips.one_toxic import Toxic
from chaos.faults.grips.requests import Heard
from chaos.faults.grips.tool_calls import ToolFault, request
from chaos.ports import Host, HttpReply
from chaos.settings import setting
from chaos.units import Ratio

_OBSERVER = "brownout-observer"  # no tool has this name, so that asking for it does nothing
_FAR = 2**53
_RECENT = 500


@dataclass(frozen=True)
class ToolLostReply(ToolFault):
    """Resets connections in the fault proxy, inside the answers to tool calls."""

    kind: ClassVar[str] = "tool_lost_reply"
    summary: ClassVar[str] = "Tool calls do what they are for, and their answers are lost to a reset connection."
    fidelity: ClassVar[str] = "MCP over HTTP"
    observer: ClassVar[str] = (
        "the observer's own call through the edge, of a tool that is not there, is reset; the audit of the tools, "
        "where there is one, has it; a direct call is answered, and the proxy counts hits"
    )

    after_bytes: int = setting("bytes of the answer that pass before the reset", default=0, least=0)
    tool: str | None = by_tool()
    share: Ratio = share_of("the answers that are lost")

    def toxic(self) -> Toxic:
        """Bytes of the body."""
        attributes = {"after_bytes": self.after_bytes, **self.chosen()}
        return Toxic("http_reset_mid_body", attributes, float(self.share))

    def harmed(self, via: Heard, direct: Heard, undo: Undo) -> bool:
        """Broken off."""
        del direct, undo
        return via.reply.status == 0 and (via.reply.error or "").startswith("broken")

    async def ask(self, url: str, undo: Undo, timeout_s: float, host: Host) -> HttpReply:
        """A call under a trace of its own for each way, so that the audit can be asked for it."""
        headers, body = request("tools/call", {"name": _OBSERVER, "arguments": {}})
        headers["traceparent"] = f"00-{_trace(url, undo)}-{_trace(url, undo)[:16]}-01"
        return await host.http.call("POST", url, body, headers=headers, timeout_s=timeout_s)

    async def seen_harmed(self, grip: Grip, undo: Undo, host: Host) -> Sighting:
        """The answer is lost, and the call that it was for has arrived."""
        lost = await super().seen_harmed(grip, undo, host)
        if not lost.seen:
            return lost
        reply = await host.http.call("GET", f"http://{grip.address}/audit?after={_FAR}")
        if reply.status == 404:
            return Sighting(seen=True, what=f"{lost.what}; the tools keep no audit")
        last = json.loads(reply.body)["last"] if reply.status == 200 else 0
        page = await host.http.call("GET", f"http://{grip.address}/audit?after={max(0, last - _RECENT)}")
        arrived = page.status == 200 and _trace(grip.via or grip.address, undo) in page.body
        return Sighting(arrived, f"{lost.what}; the audit has {'the' if arrived else 'no'} call")


def _trace(url: str, undo: Undo) -> str:
    """One for all looks of an observer at one address, because a line of the audit may come late."""
    place = url.removeprefix("http://").partition("/")[0]
    return hashlib.sha256(f"{undo['toxic']} {place}".encode()).hexdigest()[:32]
