"""A call to a dependency while it is under way: the place in the trace under which the callee works, and its span."""

from __future__ import annotations

from target_stack.gateway.trace import Trace
from target_stack.spans import SpanRing


class Hop:
    """One call, or one after the other where a client sends again by itself. End it: what ends it first is told.

    `trace` is for the headers of the call: each send has a span id of its own, so that both ends can be joined.
    """

    __slots__ = ("_attempt", "_from", "_over", "_peer", "_spans", "_start", "name", "trace")

    def __init__(self, spans: SpanRing, trace: Trace, name: str, peer: str, attempt: int) -> None:
        """The call begins now. `trace` is the caller's place, `name` the dependency, `peer` who of it is asked."""
        self._spans, self._from, self._peer, self._attempt = spans, trace, peer, attempt
        self.name = name
        self._begin()

    def _begin(self) -> None:
        self.trace = self._from.under(self._spans.new_id())
        self._start, self._over = self._spans.clock(), False

    def again(self) -> None:
        """It failed, and the same client sends it once more."""
        self.end("resent")
        self._attempt += 1
        self._begin()

    def end(self, outcome: str, prompt_tokens: int | None = None, output_tokens: int | None = None) -> None:
        """Write it down; any later end of the same call changes nothing."""
        if self._over:
            return
        self._over = True
        trace = self.trace
        row = (trace.trace_id, trace.parent_id, self._from.parent_id, "caller", self.name, self._peer)
        self._spans.add(*row, self._start, self._spans.clock(), outcome, self._attempt, prompt_tokens, output_tokens)
