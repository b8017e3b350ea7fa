"""Who may call what."""

from __future__ import annotations

import pytest

from target_stack.tools.permissions import Agent, Register, agent_token, token_hash, with_token_hashes

OWNERS = {"B-1001": "C-101", "B-1002": "C-102"}


def agent(**tools):
    return Agent.from_config("a", {"token_sha256": "x", "tools": tools})


def test_a_tool_that_is_not_named_is_refused():
    assert agent(order_status={}).refusal("refund_order", {}, OWNERS.get) == "a may not call refund_order"


def test_a_tool_without_constraints_takes_any_arguments():
    assert agent(order_status={}).refusal("order_status", {"order": "B-1001"}, OWNERS.get) is None


@pytest.mark.parametrize(
    ("constraint", "value", "allowed"),
    [
        ({"at_most": 500}, 500, True),
        ({"at_most": 500}, 501, False),
        ({"at_most": 500}, None, False),
        ({"one_of": ["B-1001"]}, "B-1001", True),
        ({"one_of": ["B-1001"]}, "B-1002", False),
        ({"of_customer": "C-101"}, "B-1001", True),
        ({"of_customer": "C-101"}, "B-1002", False),
        ({"of_customer": "C-101"}, "B-9999", False),
        ({"of_customer": "C-101"}, 7, False),
        ({"of_customer": "C-101", "one_of": ["B-1002"]}, "B-1001", False),
    ],
)
def test_every_constraint_of_an_argument_must_hold(constraint, value, allowed):
    refusal = agent(t={"x": constraint}).refusal("t", {"x": value}, OWNERS.get)
    assert (refusal is None) is allowed


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"tokn": "x"}, "agent a: unknown key 'tokn'"),
        ({"tools": {"t": {"x": {"at_mos": 1}}}}, "agent a: t.x: unknown key 'at_mos'"),
    ],
)
def test_a_rule_that_nobody_would_check_is_refused_at_start(record, message):
    with pytest.raises(ValueError, match=message):
        Register.from_config({"a": record})


def test_a_token_identifies_its_agent_and_nothing_else_does():
    register = Register.from_config(with_token_hashes({"a": {}, "b": {}}, b"secret"))
    assert register.identify(agent_token(b"secret", "b")).name == "b"
    assert register.identify(agent_token(b"other secret", "b")) is None
    assert register.identify("") is None


def test_an_agent_without_a_hash_is_nobody():
    assert Register.from_config({"a": {"tools": {}}}).identify("") is None
    assert token_hash("") != ""
