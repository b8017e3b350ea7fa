"""`mcp_wrong_schema`: the tool does its work, and its result has another shape than the tool's output schema says."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from chaos.proxy.toxics.mcp_calls import JSON, McpCalls
from chaos.proxy.toxics.per_request import Harm, Steps
from chaos.proxy.traffic.events import is_stream, with_length
from chaos.proxy.traffic.messages import Alien, Data, Head, Part
from chaos.proxy.traffic.messages import End as MessageEnd
from chaos.settings import setting

_DATA_LINE = re.compile(rb"^(data: ?)([^\r\n]+)", re.MULTILINE)
_BREACHES = ("missing", "null", "renamed", "unstructured")


@dataclass
class McpWrongSchema(McpCalls):
    """The JSON around the result stays valid, so that only a reader of the schema finds it."""

    kind: ClassVar[str] = "mcp_wrong_schema"
    go_name: ClassVar[str] = "McpWrongSchemaToxic"
    breach: str = setting(
        "missing: no field is there; null: none has a value; renamed: each has another name; unstructured: text only",
        default="missing",
    )

    def problem(self) -> str | None:
        return None if self.breach in _BREACHES else f"breach {self.breach!r} is none of {', '.join(_BREACHES)}"

    def harm(self) -> Harm:
        return _Reshape(self.breach)


class _Reshape(Harm):
    """Holds an answer until it is whole, and passes it on with its result changed."""

    def __init__(self, breach: str) -> None:
        super().__init__()
        self._breach = breach
        self._head: Head | None = None
        self._body = bytearray()
        self._retired = False

    def applies(self, answer: Head, /) -> bool:
        plain = answer.headers.get("content-encoding", "identity").lower() == "identity"
        is_json = answer.headers.get("content-type", "").partition(";")[0].strip().lower() == JSON
        return plain and answer.status == 200 and (is_json or is_stream(answer))

    @property
    def holds_framing(self) -> bool:
        return True

    def retire(self) -> None:
        self._retired = True

    def part(self, part: Part, /) -> Steps:
        if isinstance(part, Head):
            self._head = part
        elif isinstance(part, Data):
            self._body += part.raw
        elif isinstance(part, Alien):
            return ((0, part.raw),)
        elif isinstance(part, MessageEnd) and self._head:
            body = bytes(self._body) if self._retired else self._reshaped(is_stream(self._head))
            return ((0, with_length(self._head, len(body)) + body),)
        return ()

    def _reshaped(self, stream: bool) -> bytes:
        body = bytes(self._body)
        changed = _DATA_LINE.sub(self._event, body) if stream else reshaped(body, self._breach)
        if changed != body:
            self.hit()
        return changed

    def _event(self, line: re.Match[bytes]) -> bytes:
        return line[1] + reshaped(line[2], self._breach)


def reshaped(message: bytes, breach: str) -> bytes:
    """A JSON-RPC message whose result breaks the schema; one without a result as it is."""
    try:
        answer = json.loads(message)
    except (ValueError, RecursionError):
        return message
    result = answer.get("result") if isinstance(answer, dict) else None
    return json.dumps({**answer, "result": _result(result, breach)}).encode() if isinstance(result, dict) else message


def _result(result: Mapping[str, Any], breach: str) -> dict[str, Any]:
    """The structured content is changed, and the text that repeats it; a result without any is changed itself."""
    structured = result.get("structuredContent")
    if not isinstance(structured, dict):
        return _fields(result, breach)
    rest = {name: value for name, value in result.items() if name != "structuredContent"}
    if breach == "unstructured":
        return rest
    changed = _fields(structured, breach)
    return {**rest, "content": [{"type": "text", "text": json.dumps(changed)}], "structuredContent": changed}


def _fields(fields: Mapping[str, Any], breach: str) -> dict[str, Any]:
    match breach:
        case "null":
            return dict.fromkeys(fields)
        case "renamed":
            return {f"{name}_v2": value for name, value in fields.items()}
        case _:
            return {}
