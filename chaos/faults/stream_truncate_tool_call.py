"""The arguments of a tool call stop in the middle; the stream ends as if all were well."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from chaos.faults.fault import CannotInject
from chaos.faults.grips import streams
from chaos.faults.grips.choosing import by_model, by_path, by_trace, matching, share_of
from chaos.faults.grips.one_toxic import Toxic
from chaos.faults.grips.streams import StreamFault
from chaos.inventory import Target
from chaos.ports import Host
from chaos.settings import setting
from chaos.units import Ratio

_CALL_TOKENS = 60  # of which the observer needs a whole call


@dataclass(frozen=True)
class StreamTruncateToolCall(StreamFault):
    """Cuts arguments in the fault proxy before a target. The finish reason still says `tool_calls`."""

    kind: ClassVar[str] = "stream_truncate_tool_call"
    summary: ClassVar[str] = (
        "The arguments of tool calls in token streams stop in the middle; the target itself is well."
    )
    fidelity: ClassVar[str] = "HTTP stream"
    observer: ClassVar[str] = (
        "the arguments in the observer's own stream through the edge are no JSON, in a direct one they are, and "
        "the proxy has counted hits"
    )
    endings: ClassVar[frozenset[streams.Ending]] = frozenset({"cut call"})

    keep_chars: int = setting("characters of each call's arguments that pass", default=5, least=0, most=10_000)
    share: Ratio = share_of("the streams whose calls are cut")
    path: str | None = by_path()
    model: str | None = by_model()
    trace: str | None = by_trace()

    def toxic(self) -> Toxic:
        """Characters."""
        attributes = {"keep_chars": self.keep_chars, **matching(self.path, self.model, self.trace)}
        return Toxic("sse_truncate_tool_call", attributes, float(self.share))

    async def expected(self, targets: tuple[Target, ...], host: Host, /) -> Mapping[str, Any]:
        """As for every stream. Raises CannotInject when a target makes no tool call where it must."""
        found = await super().expected(targets, host)
        for target in targets:
            stream = await self.heard(target.address, target.name, {**found, "toxic": ""}, host)
            if not streams.calls_in(stream):
                raise CannotInject(
                    f"{target.name} makes no tool call when it is told to ({stream}), so none can be cut; "
                    "choose an engine that serves a model with tools"
                )
        return found

    def question(self, model: str, tokens: int) -> tuple[str, dict[str, Any]]:
        """A chat that must end in a tool call."""
        wanted = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
        function = {"name": "weather", "description": "The weather in a city.", "parameters": wanted}
        body = {
            "model": model,
            "messages": [{"role": "user", "content": "What is the weather in Reykjavik?"}],
            "tools": [{"type": "function", "function": function}],
            "tool_choice": "required",
            "max_tokens": _CALL_TOKENS + tokens,
            "stream": True,
        }
        return "/v1/chat/completions", body
