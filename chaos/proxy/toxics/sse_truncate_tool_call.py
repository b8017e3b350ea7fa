"""`sse_truncate_tool_call`: the arguments of a tool call stop in the middle; the stream ends as if all were well."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, ClassVar

from chaos.proxy.toxics.event_harm import EventHarm
from chaos.proxy.toxics.per_request import PerRequest
from chaos.proxy.traffic.events import data_of
from chaos.settings import setting


@dataclass
class SseTruncateToolCall(PerRequest):
    """`finish_reason` still says `tool_calls`, so only a client that reads the arguments as JSON can tell."""

    kind: ClassVar[str] = "sse_truncate_tool_call"
    go_name: ClassVar[str] = "SseTruncateToolCallToxic"
    keep_chars: int = setting("characters of each call's arguments that pass", default=5)

    def harm(self) -> EventHarm:
        return _Truncate(max(0, self.keep_chars))


class _Truncate(EventHarm):
    """Counts characters for each call of each choice; streams without calls pass untouched."""

    def __init__(self, keep_chars: int) -> None:
        super().__init__()
        self._keep_chars = keep_chars
        self._passed: dict[tuple[int, int], int] = {}

    def edit(self, _number: int, event: bytes, /) -> bytes:
        data = data_of(event) or b""
        if b'"tool_calls"' not in data:
            return event
        try:
            chunk = json.loads(data)
        except ValueError:
            return event
        if not sum([self._cut(place, function) for place, function in _calls(chunk)]):
            return event
        self.hit()
        self.events += 1
        return event.replace(data, json.dumps(chunk, separators=(",", ":"), ensure_ascii=False).encode(), 1)

    def _cut(self, place: tuple[int, int], function: dict[str, Any]) -> bool:
        """Shorten one piece of arguments; whether anything was taken."""
        piece = function["arguments"]
        passed = self._passed.get(place, 0)
        self._passed[place] = passed + len(piece)
        function["arguments"] = piece[: max(0, self._keep_chars - passed)]
        return bool(function["arguments"] != piece)


def _calls(chunk: Any) -> list[tuple[tuple[int, int], dict[str, Any]]]:
    """The functions with arguments in a chunk, each with its place (choice, call); other shapes are left alone."""
    found = []
    for choice in _objects(chunk, "choices"):
        delta = choice.get("delta")
        for call in _objects(delta, "tool_calls"):
            function = call.get("function")
            if isinstance(function, dict) and isinstance(function.get("arguments"), str):
                found.append(((choice.get("index", 0), call.get("index", 0)), function))
    return found


def _objects(holder: Any, key: str) -> list[dict[str, Any]]:
    listed = holder.get(key) if isinstance(holder, dict) else None
    return [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
