"""What the store refuses, and whose a task is."""

from __future__ import annotations

import dataclasses

import pytest

from target_stack.agent.desk import LeaseLost, Note, Save
from target_stack.agent.settings import QueueRules
from target_stack.agent.store import Circle, Conflict, Full, TaskStore

NOTE = Note("plan", "observed", 1)


def test_a_submit_with_the_same_key_is_the_same_task_and_with_other_content_a_conflict(world):
    place = world()
    first = place.submit("complaint")
    again = dataclasses.replace(first, id="t-9", priority=9)
    assert first == place.store.submit(again)
    with pytest.raises(Conflict, match="key-t-1 belongs to another task"):
        place.store.submit(dataclasses.replace(again, goal="Another order: B-1002."))


def test_a_circle_that_can_be_seen_is_refused_when_it_would_close(world):
    place = world()
    place.submit("complaint", "t-1", depends_on=("key-t-2",))
    place.submit("complaint", "t-2", depends_on=("key-t-3",))
    with pytest.raises(Circle, match="key-t-3 waits for t-1 waits for key-t-2 waits for key-t-3"):
        place.submit("complaint", "t-3", depends_on=("t-1",))
    with pytest.raises(Circle):
        place.submit("complaint", "t-4", depends_on=("key-t-4",))


def test_a_circle_that_nobody_saw_is_broken_by_the_bound_of_its_waits_and_told(world):
    place = world()
    place.submit("complaint", "t-1", depends_on=("key-t-2",))
    place.store._insert(_circular(place))
    place.run()
    assert {"handed_over"} == {place.task("t-1").phase, place.task("t-2").phase}
    assert "deadlock_broken" in {event["name"] for event in place.events()}


def _circular(place):
    """A second task that waits for the first, put in past the check."""
    first = place.task("t-1")
    return dataclasses.replace(first, id="t-2", key="key-t-2", depends_on=("t-1",), waits_for=("t-1",))


def test_more_open_tasks_than_there_may_be_are_turned_away(world):
    place = world(queue=QueueRules(most_open=2))
    place.submit("complaint", "t-1")
    place.submit("complaint", "t-2")
    with pytest.raises(Full):
        place.submit("complaint", "t-3")


def test_a_task_in_hand_is_given_to_nobody_else_until_its_lease_runs_out(world):
    place = world()
    place.submit("complaint")
    taken = place.store.take("support", place.now)
    lease_s = place.rules.waits.lease_s
    assert place.now + lease_s == place.store.take("support", place.now)
    place.store.renew(["t-1"], place.now + 1.0)
    assert place.now + 1.0 + lease_s == place.store.take("support", place.now + lease_s)
    late = place.store.take("support", place.now + 1.0 + lease_s)
    assert (taken.resumed, late.resumed) == (False, True)


def test_a_process_that_lost_its_task_to_a_successor_cannot_write_over_it(world):
    place = world()
    task = place.submit("complaint")
    old = place.store
    old.take("support", place.now)
    new = TaskStore(place.folder / "tasks.sqlite", place.rules)
    assert new.take("support", place.now).resumed, "a dead process's task is due at once"
    with pytest.raises(LeaseLost):
        old.save(Save(task, NOTE), place.now, place.now)
    new.close()


def test_what_is_told_and_counted_goes_on_over_a_restart(world):
    place = world()
    place.submit("complaint", goal="B-9999 leaks.")
    place.run()
    seen = place.store.account.events(0)
    place.live()
    assert seen == place.store.account.events(0)
    counts = {(name, *labels.values()): value for name, labels, value in place.store.account.counts()}
    assert 1 == counts["agent_tasks_ended_total", "complaint", "failed"]
    assert 1 == counts["agent_tool_calls_total", "order_status", "refused"]


def test_a_task_and_a_save_survive_the_passage_through_json(world):
    import json

    place = world()
    place.submit("refund")
    place.run()
    task = place.task()
    save = Save(task, NOTE, ("t-1.0", {"text": "x"}), task, ("a",))
    assert save == Save.from_json(json.loads(json.dumps(save.to_json())))
