"""A try that failed: how, and what that says about the replica. What is tried again: policies/retry_classes.py."""

from __future__ import annotations

from typing import Any

from target_stack.gateway.policies.outlier import Trouble
from target_stack.gateway.policies.retry_classes import Kind

_STALLS: frozenset[Kind] = frozenset({"no_first_token", "stalled"})
_SAYS_NOTHING: frozenset[Kind] = frozenset({"busy", "rejected", "too_slow"})


class EngineFailure(Exception):
    """A try that failed. `status` and `body` are the engine's answer when there was one; `retry_after_s` is the pause
    that it asked for, 0 when it named none.
    """

    def __init__(
        self,
        kind: Kind,
        message: str,
        *,
        status: int = 0,
        body: dict[str, Any] | None = None,
        retry_after_s: float = 0.0,
    ) -> None:
        """Keep what was seen."""
        super().__init__(message)
        self.kind = kind
        self.status = status
        self.body = body
        self.retry_after_s = retry_after_s


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
