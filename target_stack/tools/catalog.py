"""The tools that a model may call: typed arguments in, typed results out, one handler each. Knows no transport.

A handler reads and writes one open store inside the caller's transaction; who may call it, how often and what is
written down about it is decided at the desk.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from target_stack.tools.refusal import ToolError
from target_stack.tools.store import ToolStore

Order = Annotated[str, Field(pattern=r"^B-\d{4}$", description="number of an order", examples=["B-1001"])]
Cents = Annotated[int, Field(ge=1, le=10_000_000, description="an amount of money in euro cents", examples=[1990])]


class Arguments(BaseModel):
    """What a tool takes. Nothing is converted and nothing is ignored."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Result(BaseModel):
    """What a tool gives."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class OrderStatusArguments(Arguments):
    """Of `order_status`."""

    order: Order


class OrderStatus(Result):
    """An order as it stands."""

    order: str
    customer: str
    status: str
    parcel: str
    paid_cents: int
    refunded_cents: int


class SearchDocsArguments(Arguments):
    """Of `search_docs`."""

    query: Annotated[str, Field(pattern=r"\S", max_length=200, description="words to look for")]
    limit: Annotated[int, Field(ge=1, le=10, description="how many documents at most")] = 3


class Found(Result):
    """One document."""

    document: str
    text: str


class SearchResult(Result):
    """Documents, best first."""

    documents: list[Found]


class OpenTicketArguments(Arguments):
    """Of `open_ticket`."""

    order: Order
    subject: Annotated[str, Field(pattern=r"\S", max_length=500, description="what is wrong, in one sentence")]


class Ticket(Result):
    """A ticket that was opened."""

    ticket: str
    order: str
    status: Literal["open"]


class RefundOrderArguments(Arguments):
    """Of `refund_order`."""

    order: Order
    amount_cents: Cents


class Refund(Result):
    """A refund that was made; `refunded_cents` is the sum of all of the order."""

    refund: str
    order: str
    amount_cents: int
    refunded_cents: int


Handler = Callable[[Any, ToolStore], Result]


@dataclass(frozen=True)
class Tool:
    """One tool. `acts` means that a call changes the world, so that it needs an idempotency key."""

    name: str
    summary: str
    arguments: type[Arguments]
    result: type[Result]
    handler: Handler
    acts: bool = False


def _order_status(asked: OrderStatusArguments, store: ToolStore) -> OrderStatus:
    return OrderStatus(order=asked.order, **_known_order(asked.order, store))


def _search_docs(asked: SearchDocsArguments, store: ToolStore) -> SearchResult:
    found = store.search(asked.query, asked.limit)
    return SearchResult(documents=[Found(document=name, text=text) for name, text in found])


def _open_ticket(asked: OpenTicketArguments, store: ToolStore) -> Ticket:
    _known_order(asked.order, store)
    return Ticket(ticket=f"T-{store.add_ticket(asked.order, asked.subject)}", order=asked.order, status="open")


def _refund_order(asked: RefundOrderArguments, store: ToolStore) -> Refund:
    order = _known_order(asked.order, store)
    refunded = order["refunded_cents"] + asked.amount_cents
    if refunded > order["paid_cents"]:
        left = order["paid_cents"] - order["refunded_cents"]
        raise ToolError("conflict", f"only {left} cents of order {asked.order} can still be refunded", "amount_cents")
    number = store.add_refund(asked.order, asked.amount_cents)
    return Refund(refund=f"R-{number}", order=asked.order, amount_cents=asked.amount_cents, refunded_cents=refunded)


def _known_order(number: str, store: ToolStore) -> dict[str, Any]:
    found = store.order(number)
    if found is None:
        raise ToolError("not_found", f"there is no order {number}", "order")
    return found


TOOLS = (
    Tool("order_status", "Where an order is, and what it cost.", OrderStatusArguments, OrderStatus, _order_status),
    Tool("search_docs", "Find passages of the shop's own documents.", SearchDocsArguments, SearchResult, _search_docs),
    Tool("open_ticket", "Open a support ticket.", OpenTicketArguments, Ticket, _open_ticket, acts=True),
    Tool("refund_order", "Pay money back to a customer.", RefundOrderArguments, Refund, _refund_order, acts=True),
)  # fmt: skip
_BY_NAME: Mapping[str, Tool] = {tool.name: tool for tool in TOOLS}


def find_tool(name: str) -> Tool:
    """The tool of this name. Raises ToolError with the nearest name."""
    if name not in _BY_NAME:
        near = difflib.get_close_matches(name, _BY_NAME, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ToolError("unknown_tool", f"there is no tool {name!r}{hint}")
    return _BY_NAME[name]


def check_arguments(tool: Tool, given: Mapping[str, Any]) -> Arguments:
    """Exactly the tool's arguments, each well formed. Raises ToolError naming the first that is not."""
    try:
        return tool.arguments.model_validate(given)
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_context=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        raise ToolError("invalid_argument", f"{name}: {_told(first['type'], first['msg'], tool)}", name) from None


def _told(kind: str, message: str, tool: Tool) -> str:
    if kind == "extra_forbidden":
        return f"{tool.name} takes {', '.join(tool.arguments.model_fields)}; not this"
    if kind == "missing":
        return "is missing"
    return message[0].lower() + message[1:]
