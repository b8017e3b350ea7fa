"""Why a call was not done: one shape for every transport."""

from __future__ import annotations

from typing import Any, Literal

Code = Literal[
    "unauthenticated",
    "permission_denied",
    "unknown_tool",
    "invalid_argument",
    "not_found",
    "conflict",
    "deadline_exceeded",
]


class ToolError(Exception):
    """A call that was refused: nothing was done. `argument` names the culprit."""

    def __init__(self, code: Code, message: str, argument: str | None = None) -> None:
        """Keep what the caller will be told."""
        super().__init__(message)
        self.code: Code = code
        self.argument = argument

    def to_json(self) -> dict[str, Any]:
        """`{"error": {"code", "message", "argument"}}`."""
        return {"error": {"code": self.code, "message": str(self), "argument": self.argument}}
