"""The tools that a model may call, and the one way to call them. Knows nothing of HTTP or any other transport.

A call is checked against the tool's own argument list, handled, and written down in the same transaction as its effect.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from target_stack.tools.store import AuditEntry, ToolStore

MOST_TEXT = 500


class ToolError(Exception):
    """A call that was refused. `code` is one of the words below, `argument` names the culprit."""

    def __init__(self, code: str, message: str, argument: str | None = None) -> None:
        """Code: unknown_tool, invalid_argument, not_found or conflict."""
        super().__init__(message)
        self.code = code
        self.argument = argument

    def to_json(self) -> dict[str, Any]:
        """The same shape for every transport."""
        return {"error": {"code": self.code, "message": str(self), "argument": self.argument}}


@dataclass(frozen=True)
class Argument:
    """A text argument; every one must be given. `example` stands in the message when it is wrong."""

    name: str
    doc: str
    example: str
    pattern: str = r"(?s).*\S.*"

    def check(self, value: Any) -> str:
        """The value as it is. Raises ToolError."""
        if not isinstance(value, str):
            kind = type(value).__name__
            raise ToolError("invalid_argument", f"{self.name} must be a string, not {kind}", self.name)
        if len(value) > MOST_TEXT:
            raise ToolError("invalid_argument", f"{self.name} is longer than {MOST_TEXT} characters", self.name)
        if not re.fullmatch(self.pattern, value):
            raise ToolError("invalid_argument", f"{self.name} must look like {self.example!r}", self.name)
        return value


Handler = Callable[[Mapping[str, str], ToolStore], dict[str, Any]]


@dataclass(frozen=True)
class Tool:
    """One tool: what it is for, what it takes, what it does."""

    name: str
    summary: str
    arguments: tuple[Argument, ...]
    handler: Handler

    def schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments, as function-calling models read it."""
        properties = {
            a.name: {"type": "string", "description": a.doc, "pattern": a.pattern, "maxLength": MOST_TEXT}
            for a in self.arguments
        }
        return {
            "type": "object",
            "properties": properties,
            "required": [a.name for a in self.arguments],
            "additionalProperties": False,
        }


def _order_status(arguments: Mapping[str, str], store: ToolStore) -> dict[str, Any]:
    number = arguments["order"]
    found = store.order(number)
    if found is None:
        raise ToolError("not_found", f"there is no order {number}", "order")
    return {"order": number, **found}


def _create_ticket(arguments: Mapping[str, str], store: ToolStore) -> dict[str, Any]:
    order, subject, key = (arguments[name] for name in ("order", "subject", "idempotency_key"))
    if store.order(order) is None:
        raise ToolError("not_found", f"there is no order {order}", "order")
    ticket = store.add_ticket(key, order, subject)
    if (ticket.order, ticket.subject) != (order, subject):
        raise ToolError("conflict", "this key made a ticket with other arguments", "idempotency_key")
    return {"ticket": f"T-{ticket.id}", "order": order, "status": "open", "repeated": not ticket.new}


_ORDER = Argument("order", "number of an order", "B-1001", r"B-\d{4}")
TOOLS = (
    Tool("order_status", "Where an order is.", (_ORDER,), _order_status),
    Tool(
        "create_ticket",
        "Open a support ticket. The same idempotency_key never opens a second one.",
        (
            _ORDER,
            Argument("subject", "what is wrong, in one sentence", "The kettle leaks."),
            Argument(
                "idempotency_key", "unique to the intent, the same on every resend", "order-1001-leak", r"[\w.:-]{1,64}"
            ),
        ),
        _create_ticket,
    ),
)


def find_tool(name: str) -> Tool:
    """The tool of this name. Raises ToolError with the nearest name."""
    known = {tool.name: tool for tool in TOOLS}
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        raise ToolError("unknown_tool", f"there is no tool {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    return known[name]


def check_arguments(tool: Tool, given: Any) -> dict[str, str]:
    """Exactly the tool's arguments, each well formed. Raises ToolError naming the first that is not."""
    if not isinstance(given, Mapping):
        raise ToolError("invalid_argument", "arguments must be a JSON object")
    names = [argument.name for argument in tool.arguments]
    for name in given:
        if name not in names:
            raise ToolError("invalid_argument", f"{tool.name} takes {', '.join(names)}; not {name!r}", str(name))
    for name in names:
        if name not in given:
            raise ToolError("invalid_argument", f"{name} is missing", name)
    return {argument.name: argument.check(given[argument.name]) for argument in tool.arguments}


def call(name: str, given: Any, *, caller: str, wall: float, store: ToolStore) -> dict[str, Any]:
    """Run a tool and write an audit line. Raises ToolError, and then nothing but the audit line is stored."""

    def record(outcome: str, result: Mapping[str, Any]) -> None:
        arguments = given if isinstance(given, Mapping) else {}
        store.record(AuditEntry(wall, caller, name, arguments, outcome, result))

    try:
        tool = find_tool(name)
        result = tool.handler(check_arguments(tool, given), store)
    except ToolError as refused:
        store.undo()
        record(refused.code, refused.to_json())
        raise
    record("ok", result)
    return result
