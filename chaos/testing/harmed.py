"""What the toxics that know HTTP do to one answer, in memory: as the real proxy does it to bytes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from chaos.ports import HttpReply

DONE = "data: [DONE]\n\n"
DIED = 'data: {"error": {"message": "EngineCore died", "code": 500}}\n\n'
BODIES = {"empty": "", "html": "<!doctype html>", "broken_json": '{"id": "chatcmpl-0", "choi'}


def lost(word: str) -> HttpReply:
    """No answer."""
    return HttpReply(status=0, body="", headers={}, error=word)


def event(data: Mapping[str, Any]) -> str:
    """One event of a stream."""
    return f"data: {json.dumps(data)}\n\n"


def call(arguments: str) -> str:
    """A piece of a tool call."""
    return event({"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"arguments": arguments}}]}}]})


def late_s(kind: str, attributes: Mapping[str, Any]) -> float:
    """By how much a toxic delays."""
    return float(attributes["delay"]) / 1000 if kind in ("http_delay", "sse_slow_first") else 0.0


def harmed(events: Sequence[str], kind: str, attributes: Mapping[str, Any]) -> HttpReply:
    """A whole stream after the toxic."""
    after = int(attributes.get("after_events", 0))
    first, rest = list(events[:after]), list(events[after:])
    match kind:
        case "sse_cut" if attributes["ending"] != "clean":
            return lost("broken: incomplete read")
        case "sse_cut":
            kept = first
        case "sse_error_frame":
            kept = [*first, DIED, DONE]
        case "sse_garble":
            kept = [*first, rest[0][: len(rest[0]) // 2].rstrip() + "\n\n", *rest[1:]]
        case "sse_duplicate":
            kept = [*first, rest[0], *rest]
        case "sse_drop_done":
            kept = [each for each in events if each != DONE]
        case "sse_truncate_tool_call":
            kept = [call('{"ci') if "tool_calls" in each else each for each in events[-2:]]
        case _:
            kept = list(events)
    return HttpReply(200, "".join(kept), {})
