"""Server-sent events of an engine: bytes to frames, and the judgement whether a stream was a whole answer.

HTTP 200 and `[DONE]` prove nothing: real vLLM sends both after its engine died (vllm_wire.md, sections 3 and 11). A
stream is whole when every choice got a finish_reason other than abort and no frame was an error. `TrustingJudge` is the
judgement of a gateway that does not know this.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from target_stack.gateway.policies.answers import AnswerSettings
from target_stack.gateway.retries import EngineFailure

DONE = b"data: [DONE]\n\n"
_FRAME_BYTES_MAX = 1 << 20
_decoded = json.JSONDecoder().decode  # `json.loads` would guess the encoding of each of thousands of frames a second


@dataclass(frozen=True)
class Frame:
    """One event: its bytes as they came, and its JSON; `data` is None for `[DONE]` and for comments."""

    raw: bytes
    data: dict[str, Any] | None = None
    done: bool = False


class SseParser:
    """Cuts bytes into frames, wherever the network cut them."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Frames that are complete now. Raises EngineFailure (malformed)."""
        self._rest += data.replace(b"\r\n", b"\n") if b"\r" in data else data
        while True:
            raw, end, rest = self._rest.partition(b"\n\n")
            if not end:
                break
            self._rest = rest
            if raw:
                yield _frame(raw)
        if len(self._rest) > _FRAME_BYTES_MAX:
            raise EngineFailure("malformed", "a frame of the engine is too long")


def _frame(raw: bytes) -> Frame:
    if raw.startswith(b":"):
        return Frame(raw + b"\n\n")
    if not raw.startswith(b"data:"):
        raise EngineFailure("malformed", "the engine sent something that is no data frame")
    payload = raw[5:].strip()
    if payload == b"[DONE]":
        return Frame(DONE, done=True)
    try:
        data = _decoded(payload.decode())
    except ValueError as problem:
        raise EngineFailure("malformed", "the engine sent a frame that is no JSON") from problem
    if not isinstance(data, dict):
        raise EngineFailure("malformed", "the engine sent a frame that is no object")
    return Frame(raw + b"\n\n", data)


class Judge(Protocol):
    """Watches the frames of one answer and says whether it is whole."""

    @property
    def finished(self) -> bool:
        """Everything that belongs to the answer has come."""
        ...

    def see(self, frame: Frame) -> bool:
        """Take a frame; True when it is progress (a token or an end). Raises EngineFailure."""
        ...

    def passes(self, frame: Frame) -> bool:
        """Whether the frame is for the client."""
        ...

    def ended(self, *, done: bool) -> None:
        """The stream is over, with `[DONE]` or without. Raises EngineFailure (truncated)."""
        ...


def make_judge(settings: AnswerSettings, choices: int) -> Judge:
    """The judge that the settings name, for a request that asked for so many choices."""
    return TrustingJudge() if settings.whole_by == "done" else StreamJudge(choices)


class StreamJudge:
    """Watches the frames of one answer. `choices` is how many the request asked for."""

    def __init__(self, choices: int = 1) -> None:
        self._unfinished = set(range(choices))
        self.has_content = False

    @property
    def finished(self) -> bool:
        """Every choice has its finish_reason."""
        return not self._unfinished

    def see(self, frame: Frame) -> bool:
        """Take a frame; True when it is progress (a token or an end). Raises EngineFailure (error_frame, aborted,
        malformed).
        """
        if frame.data is None:
            return False
        if "error" in frame.data:
            error = frame.data["error"]
            raise EngineFailure("error_frame", str(error.get("message") if isinstance(error, dict) else error))
        choices = frame.data.get("choices")
        if not isinstance(choices, list):
            raise EngineFailure("malformed", "the engine sent a frame without choices")
        progress = False
        for choice in choices:
            progress |= self._see_choice(choice)
        return progress

    def _see_choice(self, choice: Any) -> bool:
        if not isinstance(choice, dict):
            raise EngineFailure("malformed", "the engine sent a choice that is no object")
        reason = choice.get("finish_reason")
        if reason in ("abort", "error"):
            raise EngineFailure("aborted", "the engine gave the request up")
        delta = choice.get("delta") or {}
        content = bool(
            delta.get("content") or delta.get("tool_calls") or delta.get("reasoning") or delta.get("reasoning_content")
        )
        if reason is not None:
            self._unfinished.discard(choice.get("index", 0))
        self.has_content |= content
        return content or reason is not None

    def passes(self, frame: Frame) -> bool:  # noqa: ARG002  # the protocol's parameter
        """What was not refused by `see` is the client's."""
        return True

    def ended(self, *, done: bool) -> None:  # noqa: ARG002  # proves nothing, see the module
        """See Judge: a choice has no finish_reason."""
        if self._unfinished:
            raise EngineFailure("truncated", "the engine's stream ended without a finish_reason")


class TrustingJudge:
    """Takes `[DONE]` for a whole answer and passes over what is no piece of one, error frames too."""

    def __init__(self) -> None:
        self.finished = False

    def see(self, frame: Frame) -> bool:
        """Any piece is progress."""
        return self.passes(frame)

    def passes(self, frame: Frame) -> bool:
        """Only pieces of an answer."""
        return bool(frame.data and frame.data.get("choices"))

    def ended(self, *, done: bool) -> None:
        """See Judge: without `[DONE]`."""
        self.finished = done
        if not done:
            raise EngineFailure("truncated", "the engine's stream ended without [DONE]")
