"""The chain of answers: main replicas, the small model, an answer that was kept, and a fixed text that hands over to
people. Each step down is said.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Protocol

from target_stack.gateway.call import Call
from target_stack.gateway.dispatch import Dispatcher, LiveAnswer, NoAnswer
from target_stack.gateway.requests import ChatRequest
from target_stack.gateway.retries import EngineFailure
from target_stack.gateway.sse import Frame
from target_stack.gateway.telemetry import Telemetry


class Answer(Protocol):
    """What a route needs of an answer, wherever it comes from."""

    served_by: str

    def frames(self) -> AsyncIterator[list[Frame]]:
        """Batches of frames. Raises EngineFailure when the answer breaks."""
        ...

    async def close(self) -> None:
        """Free what the answer holds; call it exactly once."""
        ...


class CannedAnswer:
    """The fixed text in the shape of a stream."""

    served_by = "gateway"

    def __init__(self, call: Call, text: str) -> None:
        self._id = f"chatcmpl-{call.trace_id}"
        self._text = text

    async def frames(self) -> AsyncIterator[list[Frame]]:
        """One frame with the text, one with the finish_reason."""
        usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
        yield [
            self._frame({"role": "assistant", "content": self._text}, None),
            self._frame({}, "stop", usage=usage),
        ]

    async def close(self) -> None:
        """Holds nothing."""

    def _frame(self, delta: dict[str, str], finish_reason: str | None, **more: object) -> Frame:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        data = {
            "id": self._id,
            "object": "chat.completion.chunk",
            "created": 0,
            "model": "canned",
            "choices": [choice],
            **more,
        }
        return Frame(b"data: " + json.dumps(data).encode() + b"\n\n", data)


Kept = Callable[[], Awaitable[Answer | None]]
"""Looks for a kept answer to the request at hand."""


class FallbackChain:
    """Walks down until somebody answers; somebody always does: at the end stands `canned_text`."""

    def __init__(self, main: Dispatcher, small: Dispatcher | None, telemetry: Telemetry, *, canned_text: str) -> None:
        self._main = main
        self._small = small
        self._canned_text = canned_text
        self._metrics = telemetry.metrics

    async def answer(self, ask: ChatRequest, call: Call, kept: Kept | None = None) -> tuple[Answer, tuple[str, ...]]:
        """The answer and the words for `x-degraded`. Raises EngineFailure (rejected) when the request itself is at
        fault.
        """
        try:
            answer = await self._main.answer(ask, call)
        except NoAnswer:
            return await self._fall_back(ask, call, kept)
        return answer, answer.degraded

    async def _fall_back(self, ask: ChatRequest, call: Call, kept: Kept | None) -> tuple[Answer, tuple[str, ...]]:
        small = await self._small_answer(ask, call)
        if small is not None:
            self._metrics.fallback.add("fallback_model")
            return small, ("fallback_model",)
        again = await kept() if kept else None
        if again is not None:
            self._metrics.fallback.add("semantic_cache")
            return again, ("semantic_cache",)
        return self.last_words(call)

    def last_words(self, call: Call) -> tuple[Answer, tuple[str, ...]]:
        """The end of the chain: what is said when nothing else is there in time."""
        self._metrics.fallback.add("canned")
        return CannedAnswer(call, self._canned_text), ("canned",)

    async def _small_answer(self, ask: ChatRequest, call: Call) -> LiveAnswer | None:
        if self._small is None:
            return None
        try:
            return await self._small.answer(replace(ask, model=None), call)  # of the release it has only the words
        except (NoAnswer, EngineFailure):
            # A refusal by the small model (a shorter context, say) is no verdict on the request.
            return None
