"""How a tool call can end: with a result, or with one of three failures that say whether it may have happened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ToolResult:
    """What a tool gave. `replayed`: an earlier call with this key had done it."""

    value: Mapping[str, Any]
    replayed: bool


class ToolCallFailed(Exception):
    """No result; the kinds below say what that means. `reason` is one word, `retry_after` the header of that name."""

    def __init__(self, reason: str, message: str = "", retry_after: str | None = None) -> None:
        """Keep why."""
        super().__init__(message or reason)
        self.reason = reason
        self.retry_after = retry_after


class ToolRefused(ToolCallFailed):
    """The tools answered no. `reason` is the code of the refusal (see refusal.py), `argument` names the culprit."""

    def __init__(self, reason: str, message: str, argument: str | None) -> None:
        """Keep the answer."""
        super().__init__(reason, message)
        self.argument = argument

    def to_json(self) -> dict[str, Any]:
        """As the tools said it."""
        return {"error": {"code": self.reason, "message": str(self), "argument": self.argument}}


class NotStarted(ToolCallFailed):
    """The request did not get there, or was turned away unread: `unreachable` or `status_4xx`."""


class MaybeDone(ToolCallFailed):
    """It may have been done: `timeout`, `lost` (the connection broke), `status_5xx`, `malformed_reply`, `wrong_schema`,
    or `tool_error` (it failed, and does not say at what).
    """
