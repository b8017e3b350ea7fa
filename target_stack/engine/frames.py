"""From tokens to the bytes of a stream: which frames there are, in which order, with which counts. Pure.

role frames of all choices ─► a frame a token (or every `stream_interval` tokens) ─► usage frame ─► [DONE]
"""

from __future__ import annotations

from collections.abc import Sequence

from target_stack.engine import replies
from target_stack.engine.delta import Delta
from target_stack.engine.requests import Call

KEEP_ALIVE = b": keep-alive\n\n"


class FrameWriter:
    """The stream of one reply so far."""

    def __init__(self, call: Call, dialect: replies.Dialect, head: replies.Head, interval: int = 1) -> None:
        """One frame carries up to `interval` tokens; the first token never waits."""
        self._call = call
        self._dialect = dialect
        self._head = head
        self._interval = interval
        self._started = False
        choices = len(call.prompts) * call.n
        self._tokens = [0] * choices
        self._shown = [0] * choices
        self._held = [""] * choices

    def frames(self, deltas: Sequence[Delta]) -> bytes:
        """The frames that are due with these tokens; before the very first go the role frames of all choices."""
        opening = b"" if self._started else self._dialect.first(len(self._tokens))
        self._started = True
        return b"".join([opening, *map(self._frame, deltas)])

    def ending(self) -> bytes:
        """The usage frame, if it was asked for."""
        if not self._call.include_usage:
            return b""
        return self._dialect.usage(sum(self._call.prompt_tokens), sum(self._tokens))

    def _frame(self, delta: Delta) -> bytes:
        choice, piece, finish, stop_reason = delta
        call = self._call
        if call.echo and self._tokens[choice] == 0:
            piece = call.prompts[choice // call.n] + piece
        self._tokens[choice] += finish != "abort"
        if self._interval > 1:
            if self._waits(choice, piece, finish):
                return b""
            piece, self._held[choice] = self._held[choice], ""
        extra = ""
        if call.continuous_usage:
            extra = replies.usage_extra(call.prompt_tokens[choice // call.n], self._tokens[choice])
        if finish is None:
            return self._dialect.token(choice, piece, extra)
        if not call.include_usage:
            extra += replies.fingerprint_extra(self._head)
        return self._dialect.last(choice, piece, finish, stop_reason, extra)

    def _waits(self, choice: int, piece: str, finish: str | None) -> bool:
        """Keep a token until its frame is due: the first, the last, or `interval` tokens since the last frame."""
        self._held[choice] += piece
        shown, tokens = self._shown[choice], self._tokens[choice]
        if finish is None and shown > 0 and tokens - shown < self._interval:
            return True
        self._shown[choice] = tokens
        return False
