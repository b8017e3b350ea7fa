"""The tools without any transport."""

from __future__ import annotations

import pytest

from target_stack.fixtures import fixtures_dir, read_lines
from target_stack.tools.catalog import TOOLS, ToolError, call
from target_stack.tools.store import ToolStore

TICKET = {"order": "B-1003", "subject": "It leaks.", "idempotency_key": "k1"}


@pytest.fixture
def store():
    opened = ToolStore(None, read_lines(fixtures_dir() / "documents" / "orders.jsonl"))
    yield opened
    opened.close()


def use(store, tool, arguments):
    return call(tool, arguments, caller="test", wall=1.0, store=store)


def refusal(store, tool, arguments):
    with pytest.raises(ToolError) as refused:
        use(store, tool, arguments)
    return refused.value.code, refused.value.argument


def test_an_order_has_a_status(store):
    assert use(store, "order_status", {"order": "B-1001"}) == {
        "order": "B-1001",
        "status": "shipped",
        "parcel": "P-7300",
    }


def test_the_same_key_opens_one_ticket_however_often_it_is_sent(store):
    first, again = use(store, "create_ticket", TICKET), use(store, "create_ticket", TICKET)
    assert first == {"ticket": "T-1", "order": "B-1003", "status": "open", "repeated": False}
    assert again == {**first, "repeated": True}


def test_another_key_opens_another_ticket(store):
    use(store, "create_ticket", TICKET)
    assert use(store, "create_ticket", {**TICKET, "idempotency_key": "k2"})["ticket"] == "T-2"


def test_a_key_cannot_be_used_for_something_else(store):
    use(store, "create_ticket", TICKET)
    assert refusal(store, "create_ticket", {**TICKET, "subject": "Other."}) == ("conflict", "idempotency_key")


@pytest.mark.parametrize(
    ("tool", "arguments", "code", "argument"),
    [
        ("order_status", {}, "invalid_argument", "order"),
        ("order_status", {"order": 1001}, "invalid_argument", "order"),
        ("order_status", {"order": "1001"}, "invalid_argument", "order"),
        ("order_status", {"order": "B-1001", "colour": "red"}, "invalid_argument", "colour"),
        ("order_status", ["B-1001"], "invalid_argument", None),
        ("order_status", {"order": "B-9999"}, "not_found", "order"),
        ("create_ticket", {**TICKET, "subject": " "}, "invalid_argument", "subject"),
        ("create_ticket", {**TICKET, "subject": "x" * 501}, "invalid_argument", "subject"),
        ("create_ticket", {**TICKET, "idempotency_key": "a b"}, "invalid_argument", "idempotency_key"),
        ("create_ticket", {**TICKET, "order": "B-9999"}, "not_found", "order"),
        ("order_state", {}, "unknown_tool", None),
    ],
)
def test_a_wrong_call_is_refused_naming_the_argument(store, tool, arguments, code, argument):
    assert refusal(store, tool, arguments) == (code, argument)


def test_an_unknown_tool_is_answered_with_the_nearest(store):
    with pytest.raises(ToolError, match="did you mean 'order_status'"):
        use(store, "order_state", {})


def test_every_call_is_in_the_audit_also_the_refused(store):
    use(store, "order_status", {"order": "B-1001"})
    refusal(store, "order_status", {"order": "B-9999"})
    lines = store.audit()
    assert [(line["seq"], line["caller"], line["tool"], line["outcome"]) for line in lines] == [
        (1, "test", "order_status", "ok"),
        (2, "test", "order_status", "not_found"),
    ]
    assert lines[0]["result"]["status"] == "shipped"
    assert [line["seq"] for line in store.audit(after=1)] == [2]


def test_the_schema_says_what_the_check_enforces():
    schema = next(tool for tool in TOOLS if tool.name == "create_ticket").schema()
    assert schema["required"] == ["order", "subject", "idempotency_key"]
    assert schema["additionalProperties"] is False


def test_tickets_survive_a_restart(tmp_path):
    for repeated in (False, True):
        opened = ToolStore(tmp_path / "t.sqlite", [{"order": "B-1003", "status": "x", "parcel": "y"}])
        assert use(opened, "create_ticket", TICKET)["repeated"] is repeated
        opened.close()
