"""The model chooses among legal plans, and only among those."""

from __future__ import annotations

import pytest

from target_stack.agent.plans import KINDS, SUBMITTED, plan_messages, read_plan
from target_stack.agent.task import Task
from target_stack.engine.text import quote


@pytest.mark.parametrize(
    ("text", "plan"),
    [
        ("First look_up, then policy, then answer.", ("look_up", "policy", "answer")),
        ("look_up -> answer", ("look_up", "answer")),
        ("answer, then look_up", None),
        ("look_up, pay, answer", None),
        ("look_up, open_ticket, answer", None),
        ("policy and answer", None),
        ("Put simply, the answer depends on the season.", None),
        ("", None),
    ],
)
def test_a_plan_is_legal_when_it_keeps_the_order_and_leaves_out_optional_steps_only(text, plan):
    assert plan == read_plan("order_inquiry", text)


@pytest.mark.parametrize("kind", SUBMITTED)
def test_the_bundled_model_finds_the_declared_plan_of_every_kind(kind):
    task = Task("t", "t", kind, "support", "B-1003 and other words: refund complaint", "a" * 32, 5, 0.0, 1.0)
    prompt = "\n".join(f"<|{m['role']}|>\n{m['content']}" for m in plan_messages(task))
    assert KINDS[kind].steps == read_plan(kind, quote(prompt) or "")
