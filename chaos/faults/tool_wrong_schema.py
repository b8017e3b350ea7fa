"""A tool was released with another shape of its results: it does its work, and whoever reads by the old schema errs."""

from __future__ import annotations

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
class ToolWrongSchema(ToolFault):
    """Changes the results of tool calls in the fault proxy."""

    kind: ClassVar[str] = "tool_wrong_schema"
    summary: ClassVar[str] = "Results of tool calls break the tool's output schema; the JSON around them is valid."
    fidelity: ClassVar[str] = "MCP over HTTP"
    observer: ClassVar[str] = (
        "the result of the observer's own listing through the edge lacks what a direct one has, "
        "and the proxy counts hits"
    )

    breach: Literal["missing", "null", "renamed", "unstructured"] = setting(
        "missing: no field is there; null: none has a value; renamed: each has another name; unstructured: text only",
        default="missing",
    )
    tool: str | None = by_tool()
    share: Ratio = share_of("the results that are wrong")

    def toxic(self) -> Toxic:
        """As the settings say."""
        return Toxic("mcp_wrong_schema", {"breach": self.breach, **self.chosen()}, float(self.share))

    def harmed(self, via: Heard, direct: Heard, undo: Undo) -> bool:
        """A result without a list of tools."""
        del undo
        return via.reply.status == 200 and result_in(via.reply) is not None and _lists(direct) and not _lists(via)


def _lists(heard: Heard) -> bool:
    return isinstance((result_in(heard.reply) or {}).get("tools"), list)
