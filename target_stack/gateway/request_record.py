"""The account of one request: who asked for what, what became of it, where the time went. Never what was said.

It is filled in on the way, and written as one line of the structured log when the request is over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from target_stack.gateway.sse import Frame
from target_stack.gateway.trace import Trace


@dataclass(slots=True)
class RequestRecord:
    """`arrived` is monotonic, all other times are seconds since then. `status` 0 means that the client left before it
    got one; `token_times_s` is None unless this request is logged in detail; `wants_counts` when the client asked for
    the frame that counts tokens.
    """

    trace: Trace = field(default_factory=lambda: Trace("", ""))
    route: str = ""
    arrived: float = 0.0
    priority: str = "interactive"
    status: int = 0
    headers: Mapping[str, str] = field(default_factory=dict)
    attempts: int = 0
    queue_s: float | None = None
    ttft_s: float | None = None
    prompt_tokens: int | None = None
    output_tokens: int = 0
    characters: int = 0
    finish_reasons: list[str] = field(default_factory=list)
    token_times_s: list[float] | None = None
    wants_counts: bool = False

    def answered(self, status: int, headers: Mapping[str, str]) -> None:
        """The reply that the client got, as far as it got it."""
        self.status, self.headers = status, headers

    def see(self, frame: Frame, at_s: float) -> int:
        """Take a frame of the answer that came `at_s` after the arrival; how many of its choices said something."""
        data = frame.data or {}
        said = 0
        for choice in data.get("choices") or ():
            delta = choice.get("delta") or {}
            text = delta.get("content") or ""
            if text or delta.get("tool_calls") or delta.get("reasoning_content"):
                said += 1
                self.characters += len(text)
            if choice.get("finish_reason"):
                self.finish_reasons.append(choice["finish_reason"])
        self._count(said, data.get("usage"), at_s)
        return said

    def _count(self, said: int, usage: Mapping[str, Any] | None, at_s: float) -> None:
        """The engine's own count is right; a frame that says something is a token as long as there is none."""
        self.output_tokens += said
        if said and self.token_times_s is not None:
            self.token_times_s += [round(at_s, 6)] * said
        if usage:
            self.prompt_tokens = usage.get("prompt_tokens")
            self.output_tokens = usage.get("completion_tokens", self.output_tokens)

    def line(self, *, outcome: str, duration_s: float) -> dict[str, Any]:
        """The fields of its line in the log."""
        degraded = self.headers.get("x-degraded", "")
        fields = {
            "trace_id": self.trace.trace_id,
            "route": self.route,
            "priority": self.priority,
            "outcome": outcome,
            "status": self.status,
            "served_by": self.headers.get("x-served-by"),
            "degraded": degraded.split(",") if degraded else [],
            "cache": self.headers.get("x-cache"),
            "release": self.headers.get("x-release"),
            "attempts": self.attempts,
            "queue_s": _rounded(self.queue_s),
            "ttft_s": _rounded(self.ttft_s),
            "duration_s": round(duration_s, 6),
            "prompt_tokens": self.prompt_tokens,
            "output_tokens": self.output_tokens,
            "finish_reasons": self.finish_reasons,
        }
        return fields if self.token_times_s is None else {**fields, "token_times_s": self.token_times_s}


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 6)


def counts_only(frame: Frame) -> bool:
    """Whether a frame only counts tokens, as an engine's last one does on request."""
    return frame.data is not None and frame.data.get("choices") == [] and "usage" in frame.data
