"""Tool calls fail: the answer is an error, and nothing was done."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar, Literal

from chaos.faults.fault import Undo
from chaos.faults.grips.choosing import by_tool, share_of
from chaos.faults.grips.one_toxic import Toxic
from chaos.faults.grips.requests import Heard
from chaos.faults.grips.tool_calls import ToolFault, result_in
from chaos.settings import setting
from chaos.units import Ratio


@dataclass(frozen=True)
class ToolError(ToolFault):
    """Answers tool calls in the fault proxy."""

    kind: ClassVar[str] = "tool_error"
    summary: ClassVar[str] = "Tool calls are answered with an error of MCP; the tool hears nothing of them."
    fidelity: ClassVar[str] = "MCP over HTTP"
    observer: ClassVar[str] = (
        "the observer's own listing of the tools through the edge gets the error, a direct one is served, "
        "and the proxy counts hits"
    )

    form: Literal["result", "protocol"] = setting(
        "result: a result with isError, as of a tool that failed; protocol: a JSON-RPC error, as of a server that did",
        default="result",
    )
    message: str = setting("what the error says", default="the tool failed")
    tool: str | None = by_tool()
    share: Ratio = share_of("the calls that fail")

    def toxic(self) -> Toxic:
        """As the settings say."""
        return Toxic("mcp_error", {"form": self.form, "message": self.message, **self.chosen()}, float(self.share))

    def harmed(self, via: Heard, direct: Heard, undo: Undo) -> bool:
        """An error, which a direct answer is not."""
        del undo
        return _is_error(via) and not _is_error(direct)


def _is_error(heard: Heard) -> bool:
    """Either of the two."""
    if heard.reply.status != 200:
        return False
    result = result_in(heard.reply)
    return bool(result.get("isError")) if result is not None else "error" in json.loads(heard.reply.body or "{}")
