"""What an answer says, gathered piece by piece: text, finish reason of every choice, error, token count. Pure, and
knows no time.

HTTP 200 proves nothing here, and neither does `[DONE]`: a vLLM server whose engine has died sends both after an error
frame. An answer is complete only when every choice gave a good finish reason.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Literal

Kind = Literal["chat", "task", "json"]
"""What a whole answer looks like: `chat` has choices with finish reasons, `task` is an agent's task that was done or
handed over to a person, `json` is any JSON object (embeddings, tools).
"""

GOOD_STATES = frozenset({"done", "handed_over"})
GOOD_FINISHES = frozenset({"stop", "length", "tool_calls"})
DONE = b"[DONE]"


class Answer:
    """The state of one answer. Hand in event data or a whole body; never raises."""

    def __init__(self, kind: Kind) -> None:
        """Nothing came yet."""
        self._kind = kind
        self._text: list[str] = []
        self._finishes: dict[int, str | None] = {}
        self._usage: int | None = None
        self._pieces = 0
        self._arguments: dict[tuple[int, int], str] = {}  # of each tool call: choice, call
        self._whole = False
        self._state = ""
        self.done = False
        self.error = False
        self.malformed = False

    @property
    def text(self) -> str:
        """All text so far."""
        return "".join(self._text)

    @property
    def tokens(self) -> int:
        """Tokens the server counted, else pieces that came."""
        return self._pieces if self._usage is None else self._usage

    @property
    def finished(self) -> bool:
        """Every choice that began gave a good finish reason (a `json` answer: it came whole; a task: it came to an end
        that leaves nobody alone).
        """
        if self._kind != "chat":
            return self._whole
        return bool(self._finishes) and all(reason in GOOD_FINISHES for reason in self._finishes.values())

    @property
    def complaint(self) -> str:
        """Why this is no good answer, judged by its content alone; empty when it is one."""
        if self.error:
            return "error_frame"
        if self.malformed:
            return "malformed"
        if not self.finished and self._kind == "task":
            return f"state_{self._state}"
        if not self.finished:
            bad = sorted(str(reason) for reason in self._finishes.values() if reason and reason not in GOOD_FINISHES)
            return f"finish_{bad[0]}" if bad else "no_finish_reason"
        if any(_object(arguments.encode()) is None for arguments in self._arguments.values() if arguments):
            return "broken_tool_call"
        empty = not self.text.strip() and not self._arguments
        return "empty" if empty else ""

    def event(self, data: bytes) -> bool:
        """Take the data of one stream event; true when it brought tokens. What follows [DONE] is ignored."""
        if self.done:
            return False
        if data.strip() == DONE:
            self.done = True
            return False
        frame = _object(data)
        if frame is None:
            self.malformed = True
            return False
        return self._frame(frame, "delta")

    def body(self, data: bytes) -> bool:
        """Take the whole body of an answer that is no stream; true when it brought tokens."""
        self.done = True
        frame = _object(data)
        if frame is None:
            self.malformed = True
            return False
        if self._kind == "chat":
            return self._frame(frame, "message")
        if self._kind == "task":
            return self._task(frame)
        self._whole = True
        self.error = bool(frame.get("error"))
        says_something = bool(frame) and frame.get("data") != []  # embeddings without a vector are empty
        self._text.append(data.decode(errors="replace") if says_something else "")
        return says_something

    def _task(self, frame: Mapping[str, Any]) -> bool:
        """Take an agent's task; true when it brought an answer."""
        self.error = bool(frame.get("error"))
        self._state, answer = str(frame.get("state", "")), frame.get("answer")
        self._whole = self._state in GOOD_STATES
        self._text.append(answer if isinstance(answer, str) else "")
        return bool(self.text.strip())

    def _frame(self, frame: Mapping[str, Any], part: str) -> bool:
        if frame.get("error"):
            self.error = True
            return False
        usage = frame.get("usage")
        if isinstance(usage, dict) and isinstance(usage.get("completion_tokens"), int):
            self._usage = usage["completion_tokens"]
        choices = frame.get("choices")
        found = [self._choice(choice, part) for choice in choices or () if isinstance(choice, dict)]
        self._pieces += any(found)
        return any(found)

    def _choice(self, choice: Mapping[str, Any], part: str) -> bool:
        """Take one choice; true when it brought text, reasoning or a tool call."""
        index = choice.get("index", 0)
        reason = choice.get("finish_reason")
        index = index if isinstance(index, int) else 0
        self._finishes[index] = str(reason) if reason else self._finishes.get(index)
        said = choice.get(part)
        if not isinstance(said, dict):
            return False
        content, calls = said.get("content"), said.get("tool_calls")
        if isinstance(calls, list):
            self._gather(index, calls)
        if isinstance(content, str) and content:
            self._text.append(content)
            return True
        return bool(calls or said.get("reasoning") or said.get("reasoning_content"))

    def _gather(self, choice: int, calls: list[Any]) -> None:
        """Arguments come in pieces, each under the number of its call; a call without any is a call all the same."""
        for place, call in enumerate(each for each in calls if isinstance(each, dict)):
            number, function = call.get("index", place), call.get("function")
            piece = function.get("arguments") if isinstance(function, dict) else None
            key = (choice, number if isinstance(number, int) else place)
            self._arguments[key] = self._arguments.get(key, "") + (piece if isinstance(piece, str) else "")


def _object(data: bytes) -> Mapping[str, Any] | None:
    try:
        frame = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return frame if isinstance(frame, dict) else None
