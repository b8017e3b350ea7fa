"""Every wait and every refusal ends in a declared path, in virtual time."""

from __future__ import annotations

import dataclasses

import pytest

from target_stack.agent.machine import HANDED_OVER, Moment, advance, key_of, pending
from target_stack.agent.settings import AgentSettings
from target_stack.agent.task import AskModel, CallTool, Refused, Task, Unanswered, WaitRanOut

RULES = AgentSettings()


def always(event, wanted):
    """Trouble for every command of a kind."""
    return lambda command, _: event if isinstance(command, CallTool) and command.tool == wanted else None


def test_a_task_is_planned_by_the_model_and_ends_with_the_facts_in_its_answer(world):
    place = world()
    place.submit("complaint")
    place.run()
    assert place.task().plan == ("plan", "look_up", "open_ticket", "answer")
    assert "Order B-1003 is delivered, parcel P-7334." in place.task().answer
    assert "Your ticket is T-1." in place.task().answer


def test_a_refund_is_paid_by_the_other_agent_from_references_alone(world):
    place = world()
    place.submit("refund")
    place.run()
    payout = place.store.find("t-1.3")
    assert (payout.agent, payout.goal, payout.given) == ("approver", "", ("t-1.2",))
    assert {"order": "B-1003", "amount_cents": 30} == place.store.result("t-1.2")
    assert dict(place.task().found)["ask_approver"] == "t-1.3.2"
    assert "Your refund is R-1: 30 cents." in place.task().answer


def test_the_approver_declines_what_has_not_arrived_and_nothing_is_paid(world):
    place = world()
    place.submit("refund", goal="Give me 30 cents back for B-1001.")
    place.run()
    assert "declined: the order is shipped" in place.task().answer
    assert {} == place.ledger.effects


def test_a_model_without_a_plan_costs_the_declared_plan_nothing(world):
    place = world()
    place.trouble = lambda command, _: Unanswered("canned", lost=False) if isinstance(command, AskModel) else None
    place.submit("complaint")
    place.run()
    assert (place.task().phase, place.task().missing) == ("done", ("plan", "answer"))
    assert place.task().answer.startswith("Order B-1003 is delivered")


def test_a_lost_reply_is_asked_again_with_the_same_key_until_the_tries_are_used_up(world):
    place = world()
    place.trouble = always(Unanswered("lost", lost=True), "open_ticket")
    place.submit("complaint")
    place.run()
    assert (place.task().phase, place.task().reason) == ("handed_over", "open_ticket: lost")
    assert place.task().answer == HANDED_OVER
    assert place.ledger.calls["open_ticket"] == RULES.tries.most
    assert len(place.ledger.effects) == 1


def test_without_a_budget_there_is_no_second_try(world):
    place = world()
    place.trouble = always(Unanswered("unreachable", lost=False, affordable=False), "order_status")
    place.submit("complaint")
    place.run()
    assert place.task().reason == "look_up: unreachable"
    assert 1 == sum(step["step"] == "look_up" for step in place.store.account.steps("t-1"))


def test_an_order_that_is_not_there_fails_with_its_reason(world):
    place = world()
    place.submit("order_inquiry", goal="Where is B-9999?")
    place.run()
    assert (place.task().phase, place.task().reason) == ("failed", "look_up: not_found")
    assert ["task_failed"] == [event["name"] for event in place.events()]


def test_a_refused_side_effect_goes_to_a_person(world):
    place = world()
    place.trouble = always(Refused("permission_denied"), "open_ticket")
    place.submit("complaint")
    place.run()
    assert (place.task().phase, place.task().reason) == ("handed_over", "open_ticket: permission_denied")


def test_an_agent_that_does_not_answer_is_waited_for_no_longer_than_the_bound(world, waits):
    place = world(waits=waits(agent_s=2.0))
    place.asleep = frozenset({"approver"})
    began = place.now
    place.submit("refund")
    place.run()
    assert (place.task().phase, place.task().reason) == ("handed_over", "ask_approver: wait_ran_out")
    assert 2.0 <= place.now - began < 2.1
    assert [("wait_ran_out", "agent")] == [(e["name"], e["dependency"]) for e in place.events("wait_ran_out")]
    assert place.store.find("t-1.3").phase == "cancelled", "nobody waits for it any longer"


def test_without_a_bound_it_is_waited_for_as_long_as_it_sleeps(world, waits):
    place = world(waits=waits(agent_s=3600.0, task_s=3600.0))
    place.asleep = frozenset({"approver"})
    place.submit("refund")
    with pytest.raises(AssertionError, match="still open"):
        place.run(60)


def test_the_whole_task_has_a_bound_and_it_is_kept_in_the_middle_of_retries(world, waits):
    place = world(waits=waits(task_s=5.0))

    def slow(command, task):
        place.now += 2.0
        return Unanswered("timeout", lost=True) if isinstance(command, CallTool) else None

    place.trouble = slow
    began = place.now
    place.submit("complaint")
    place.run()
    assert (place.task().phase, place.task().reason) == ("handed_over", "task: wait_ran_out")
    assert place.now - began <= 5.0 + 2.0, "a call in flight is cut by its own limit, here 2 s"


def test_a_task_begins_when_those_that_it_depends_on_are_done(world):
    place = world()
    place.submit("order_inquiry", "t-1", depends_on=("key-t-2",))
    place.submit("complaint", "t-2")
    place.run()
    assert {"done"} == {place.task("t-1").phase, place.task("t-2").phase}
    first = place.store.account.steps("t-1")[0]
    assert (first["outcome"], first["wall"]) >= ("wait_over", place.store.account.steps("t-2")[-1]["wall"])


def test_a_task_whose_dependency_failed_or_never_comes_goes_to_a_person(world):
    place = world()
    place.submit("complaint", "t-1", goal="B-9999 leaks.")
    place.submit("complaint", "t-2", depends_on=("key-t-1",))
    place.submit("complaint", "t-3", depends_on=("never-submitted",))
    place.run()
    assert ("handed_over", "what it waited for was failed") == (place.task("t-2").phase, place.task("t-2").reason)
    assert ("handed_over", "dependency: wait_ran_out") == (place.task("t-3").phase, place.task("t-3").reason)


def test_a_task_that_was_begun_under_other_steps_does_not_go_on_under_these(world):
    place = world()
    place.store.submit(dataclasses.replace(place.submit("complaint"), id="t-2", key="k", edition="an older one"))
    place.run()
    assert ("handed_over", "its kind has changed since it was begun") == (
        place.task("t-2").phase,
        place.task("t-2").reason,
    )
    assert place.task("t-1").phase == "done"


def test_cancelling_ends_a_waiting_task_and_its_children_at_once(world):
    place = world()
    place.asleep = frozenset({"approver"})
    place.submit("refund")
    place.step()
    assert place.store.find("t-1.3") is not None
    place.store.cancel("t-1", place.now, place.now)
    assert ("cancelled", "cancelled") == (place.task().phase, place.store.find("t-1.3").phase)


def test_the_next_try_comes_after_a_pause_with_full_jitter_that_doubles():
    task = Task("t", "t", "complaint", "support", "B-1003", "a" * 32, 5, 0.0, 60.0, plan=("look_up",))
    pauses = []
    for _ in range(RULES.tries.most - 1):
        task = advance(task, Unanswered("lost", lost=True), {}, Moment(10.0, RULES, dice=0.5))
        pauses.append(task.not_before - 10.0)
    assert [0.05, 0.1, 0.2] == pytest.approx(pauses)
    assert advance(task, Unanswered("lost", lost=True), {}, Moment(10.0, RULES)).phase == "handed_over"


def test_an_ended_task_stays_as_it_is_and_a_key_is_a_function_of_the_step():
    task = Task("t", "t", "complaint", "support", "B-1003", "a" * 32, 5, 0.0, 60.0, plan=("open_ticket",))
    done = advance(task, WaitRanOut("task"), {}, Moment(61.0, RULES))
    assert done == advance(done, Refused("late"), {}, Moment(62.0, RULES))
    assert key_of(task, RULES) == "t.0" == pending(task, {}, Moment(0.0, RULES)).key
