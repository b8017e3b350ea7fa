"""The tools without desk or transport."""

from __future__ import annotations

import pytest
from shop import open_store

from target_stack.tools.catalog import TOOLS, check_arguments, find_tool
from target_stack.tools.refusal import ToolError

TICKET = {"order": "B-1003", "subject": "It leaks."}
REFUND = {"order": "B-1003", "amount_cents": 500}


def use(store, name, arguments):
    tool = find_tool(name)
    return tool.handler(check_arguments(tool, arguments), store).model_dump()


def refusal(store, name, arguments):
    with pytest.raises(ToolError) as refused:
        use(store, name, arguments)
    return refused.value.code, refused.value.argument


def test_an_order_has_a_status_and_a_price(store):
    assert use(store, "order_status", {"order": "B-1001"}) == {
        "order": "B-1001",
        "customer": "C-101",
        "status": "shipped",
        "parcel": "P-7300",
        "paid_cents": 4990,
        "refunded_cents": 0,
    }


def test_documents_are_found_by_any_of_the_words_best_first(store):
    found = use(store, "search_docs", {"query": "Can I return headphones?", "limit": 2})["documents"]
    assert [document["document"] for document in found][:1] == ["returns-headphones"]
    assert len(found) == 2


@pytest.mark.parametrize("query", ["???", '"', "zzzqqq NEAR("])
def test_a_query_without_a_known_word_finds_nothing_and_breaks_nothing(store, query):
    assert use(store, "search_docs", {"query": query})["documents"] == []


def test_tickets_are_numbered(store):
    assert use(store, "open_ticket", TICKET) == {"ticket": "T-1", "order": "B-1003", "status": "open"}
    assert use(store, "open_ticket", TICKET)["ticket"] == "T-2"


def test_no_more_is_refunded_than_was_paid(store):
    assert use(store, "refund_order", {**REFUND, "amount_cents": 2000})["refunded_cents"] == 2000
    assert refusal(store, "refund_order", REFUND) == ("conflict", "amount_cents")
    assert use(store, "refund_order", {**REFUND, "amount_cents": 490})["refunded_cents"] == 2490


@pytest.mark.parametrize(
    ("tool", "arguments", "code", "argument"),
    [
        ("order_status", {}, "invalid_argument", "order"),
        ("order_status", {"order": 1001}, "invalid_argument", "order"),
        ("order_status", {"order": "1001"}, "invalid_argument", "order"),
        ("order_status", {"order": "B-1001", "colour": "red"}, "invalid_argument", "colour"),
        ("order_status", {"order": "B-9999"}, "not_found", "order"),
        ("search_docs", {"query": " "}, "invalid_argument", "query"),
        ("search_docs", {"query": "x", "limit": 11}, "invalid_argument", "limit"),
        ("open_ticket", {**TICKET, "subject": " "}, "invalid_argument", "subject"),
        ("open_ticket", {**TICKET, "subject": "x" * 501}, "invalid_argument", "subject"),
        ("open_ticket", {**TICKET, "order": "B-9999"}, "not_found", "order"),
        ("refund_order", {**REFUND, "amount_cents": 0}, "invalid_argument", "amount_cents"),
        ("refund_order", {**REFUND, "amount_cents": "500"}, "invalid_argument", "amount_cents"),
        ("refund_order", {**REFUND, "amount_cents": True}, "invalid_argument", "amount_cents"),
        ("refund_order", {**REFUND, "amount_cents": 1.5}, "invalid_argument", "amount_cents"),
        ("order_state", {}, "unknown_tool", None),
    ],
)
def test_a_wrong_call_is_refused_naming_the_argument(store, tool, arguments, code, argument):
    assert refusal(store, tool, arguments) == (code, argument)


def test_an_unknown_tool_is_answered_with_the_nearest(store):
    with pytest.raises(ToolError, match="did you mean 'order_status'"):
        use(store, "order_state", {})


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_both_schemas_are_closed_and_name_every_field(tool):
    for model in (tool.arguments, tool.result):
        schema = model.model_json_schema()
        assert schema["additionalProperties"] is False
        assert set(schema["properties"]) == set(model.model_fields)


def test_what_is_stored_survives_a_restart(tmp_path):
    for number in ("T-1", "T-2"):
        opened = open_store(tmp_path / "t.sqlite")
        assert use(opened, "open_ticket", TICKET)["ticket"] == number
        assert len(use(opened, "search_docs", {"query": "tents", "limit": 10})["documents"]) < 10
        opened.close()
