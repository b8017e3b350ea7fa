"""Tool calls take longer than anybody has planned for; the tool itself was quick, and has done its work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from chaos.faults.grips.choosing import by_tool, share_of
from chaos.faults.grips.one_toxic import Toxic
from chaos.faults.grips.requests import LateAnswers
from chaos.faults.grips.tool_calls import ToolFault
from chaos.inventory import Target
from chaos.ports import Host
from chaos.settings import setting
from chaos.units import Duration, Ratio


@dataclass(frozen=True)
class ToolSlow(ToolFault, LateAnswers):
    """Holds the answers to tool calls in the fault proxy."""

    kind: ClassVar[str] = "tool_slow"
    summary: ClassVar[str] = "Answers to tool calls begin late; health checks and listings are in time."
    fidelity: ClassVar[str] = "MCP over HTTP"
    observer: ClassVar[str] = (
        "the observer's own listing of the tools through the edge is answered later than a direct one, "
        "and the proxy counts hits"
    )

    # A shorter delay drowns in what a busy machine adds.
    delay: Duration = setting("how long the answer to a call is held", least=0.05, most=600)
    tool: str | None = by_tool()
    share: Ratio = share_of("the calls that are late")

    def toxic(self) -> Toxic:
        """Milliseconds."""
        return Toxic("http_delay", {"delay": round(self.delay * 1000), **self.chosen()}, float(self.share))

    async def expected(self, targets: tuple[Target, ...], host: Host, /) -> Mapping[str, Any]:
        """How much later an answer is at least. Raises CannotInject for a tool that is not there."""
        return {**await ToolFault.expected(self, targets, host), **await LateAnswers.expected(self, targets, host)}
