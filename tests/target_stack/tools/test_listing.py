"""Whether a result has the shape that its tool promises, and when the tools are asked what they promise."""

from __future__ import annotations

import asyncio

import pytest

from chaos.testing.clock import run_virtual
from target_stack.tools.catalog import OrderStatus, Refund, SearchResult, Ticket
from target_stack.tools.listing import Listing, misfit

TICKET = Ticket.model_json_schema()
FOUND = SearchResult.model_json_schema()


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (TICKET, {"ticket": "T-1", "order": "B-1001", "status": "open"}),
        (FOUND, {"documents": []}),
        (FOUND, {"documents": [{"document": "a", "text": "b"}]}),
        (Refund.model_json_schema(), {"refund": "R-1", "order": "B-1001", "amount_cents": 1, "refunded_cents": 2}),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, None),
        ({"type": ["integer", "null"]}, 3),
        ({"type": "quaternion", "format": "odd"}, {"what": "is not known is let pass"}),
        ({"$ref": "#/$defs/Nowhere"}, 3),
        (True, 3),
    ],
)
def test_what_fits_is_let_pass(schema, value):
    assert misfit(value, schema, schema) is None


@pytest.mark.parametrize(
    ("schema", "value", "why"),
    [
        (TICKET, {}, "result.ticket is missing"),
        (TICKET, {"ticket": None, "order": "B-1", "status": "open"}, "result.ticket is no string"),
        (
            TICKET,
            {"ticket": "T", "order": "B", "status": "shut"},
            "result.status is none of the values that it may have",
        ),
        (TICKET, {"ticket": "T", "order": "B", "status": "open", "x": 1}, "result.x is not allowed"),
        (TICKET, [], "result is no object"),
        (
            FOUND,
            {"documents": [{"document": "a", "text": "b"}, {"document": "a"}]},
            "result.documents[1].text is missing",
        ),
        (FOUND, {"documents": {}}, "result.documents is no array"),
        (OrderStatus.model_json_schema() | {"required": []}, {"paid_cents": True}, "result.paid_cents is no integer"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 3, "result fits none of its shapes"),
        ({"allOf": [{"type": "object"}, {"required": ["a"]}]}, {}, "result.a is missing"),
        ({"enum": [1, 2]}, 3, "result is none of the values that it may have"),
    ],
)
def test_the_first_place_that_does_not_fit_is_told(schema, value, why):
    assert misfit(value, schema, schema) == why


class Tools:
    """Say what they are, and count how often they were asked."""

    def __init__(self, schema):
        self.schema = schema
        self.asked = 0

    async def ask(self, within_s):
        assert within_s > 0
        self.asked += 1
        await asyncio.sleep(0)
        return [{"name": "t", "outputSchema": self.schema}]


def test_the_tools_are_asked_once_however_many_results_come_at_the_same_time():
    async def main():
        tools = Tools({"type": "object"})
        listing = Listing(tools.ask)
        assert await asyncio.gather(*(listing.misfit("t", {}, 1.0) for _ in range(20))) == [None] * 20
        assert tools.asked == 1

    run_virtual(main)


def test_they_are_asked_again_when_a_result_does_not_fit_and_not_for_every_one():
    async def main():
        tools = Tools({"type": "object"})
        listing = Listing(tools.ask)
        assert await listing.misfit("t", {}, 1.0) is None
        tools.schema = {"type": "array"}  # released anew
        assert await listing.misfit("t", [], 1.0) == "result is no object"
        await asyncio.sleep(1.0)
        assert await listing.misfit("t", [], 1.0) is None
        assert await listing.misfit("t", {}, 1.0) == "result is no array"
        assert tools.asked == 2

    run_virtual(main)


def test_a_tool_that_promises_nothing_may_give_anything():
    async def main():
        assert await Listing(Tools(None).ask).misfit("t", {"x": 1}, 1.0) is None
        assert await Listing(Tools({}).ask).misfit("other", {"x": 1}, 1.0) is None

    run_virtual(main)
