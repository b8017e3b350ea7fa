"""What can go wrong with a try, and whether another try may be made.

A retry is only for failures that another replica may not have, and only while the client has seen nothing: after the
first token a second answer would be glued to half of the first. A refusal of the request itself (400, 404, ...) is
the same everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from target_stack.gateway.policies.outlier import Trouble

Kind = Literal[
    "unreachable",  # refused, or the connection went away before any answer
    "busy",  # 503, 429: alive, wants no more
    "bad_gateway",  # 502, 504
    "error",  # another 5xx
    "error_frame",  # an error inside the stream
    "aborted",  # finish_reason abort: the engine gave the request up
    "truncated",  # the stream ended without a finish_reason, [DONE] or not
    "malformed",  # not SSE, not JSON, not the shape of a chunk
    "no_first_token",  # silence before the first token
    "stalled",  # silence between tokens
    "too_slow",  # the deadline came first; the replica may be fine
    "rejected",  # 4xx: the request is at fault
]
_ONCE_ONLY: frozenset[Kind] = frozenset({"rejected", "too_slow"})
_STALLS: frozenset[Kind] = frozenset({"no_first_token", "stalled"})
_SAYS_NOTHING: frozenset[Kind] = frozenset({"busy", "rejected", "too_slow"})


class EngineFailure(Exception):
    """A try that failed. `status` and `body` are the engine's answer when there was one."""

    def __init__(self, kind: Kind, message: str, *, status: int = 0, body: dict[str, Any] | None = None) -> None:
        """Keep what was seen."""
        super().__init__(message)
        self.kind = kind
        self.status = status
        self.body = body


@dataclass(frozen=True)
class TriesSoFar:
    """Where a request stands. `remaining_s` is what its deadline leaves."""

    made: int
    content_sent: bool
    remaining_s: float


def may_retry(kind: Kind, so_far: TriesSoFar, attempts: int) -> bool:
    """Whether another try makes sense; the budget is asked after this."""
    fresh = not so_far.content_sent and so_far.remaining_s > 0
    return fresh and so_far.made < attempts and kind not in _ONCE_ONLY


def trouble_of(kind: Kind) -> Trouble | None:
    """What the failure says about the replica; None when it says nothing (busy is not broken: theory.md, section 4,
    trap f).
    """
    if kind in _SAYS_NOTHING:
        return None
    if kind == "unreachable":
        return "unreachable"
    return "stalled" if kind in _STALLS else "error"


def failure_of_status(status: int) -> Kind:
    """The kind of an answer that is not 200."""
    if status in (429, 503):
        return "busy"
    if status in (502, 504):
        return "bad_gateway"
    return "error" if status >= 500 else "rejected"
