"""A whole reply out of its stream.

The gateway always asks engines for a stream, also when the client wants one reply: only a stream shows progress, so
only then can a frozen engine be told from a long answer.
"""

from __future__ import annotations

from typing import Any


class Assembler:
    """Takes the JSON of every frame, gives the `chat.completion` object."""

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._choices: dict[int, dict[str, Any]] = {}
        self._usage: Any = None

    def add(self, chunk: dict[str, Any]) -> None:
        """Take one chunk."""
        if not self._head:
            self._head = {key: chunk.get(key) for key in ("id", "created", "model")}
        if chunk.get("system_fingerprint") is not None:
            self._head["system_fingerprint"] = chunk["system_fingerprint"]
        self._usage = chunk.get("usage") or self._usage
        for part in chunk["choices"]:
            self._add_choice(part)

    def reply(self) -> dict[str, Any]:
        """The object, with choices in order of their index."""
        choices = [self._choices[index] for index in sorted(self._choices)]
        return {**self._head, "object": "chat.completion", "choices": choices, "usage": self._usage}

    def _add_choice(self, part: dict[str, Any]) -> None:
        index = part.get("index", 0)
        choice = self._choices.setdefault(
            index,
            {"index": index, "message": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None},
        )
        _add_delta(choice["message"], part.get("delta") or {})
        if part.get("logprobs"):
            choice["logprobs"] = choice["logprobs"] or {"content": []}
            choice["logprobs"]["content"] += part["logprobs"].get("content") or []
        for key in ("finish_reason", "stop_reason"):
            if part.get(key) is not None:
                choice[key] = part[key]


def _add_delta(message: dict[str, Any], delta: dict[str, Any]) -> None:
    message["content"] += delta.get("content") or ""
    for key in ("reasoning", "reasoning_content"):
        if delta.get(key):
            message[key] = message.get(key, "") + delta[key]
    for call in delta.get("tool_calls") or ():
        _add_tool_call(message.setdefault("tool_calls", []), call)


def _add_tool_call(calls: list[dict[str, Any]], part: dict[str, Any]) -> None:
    while len(calls) <= part.get("index", 0):
        calls.append({"id": None, "type": "function", "function": {"name": "", "arguments": ""}})
    call = calls[part.get("index", 0)]
    call["id"] = part.get("id") or call["id"]
    function = part.get("function") or {}
    call["function"]["name"] += function.get("name") or ""
    call["function"]["arguments"] += function.get("arguments") or ""
