"""The process dies at every instant between two of its acts; no task is lost and no side effect happens twice."""

from __future__ import annotations

import random

import pytest

EFFECTS = {"order_inquiry": 0, "complaint": 1, "refund": 1}


@pytest.mark.parametrize("kind", EFFECTS)
def test_a_death_at_any_step_boundary_and_between_persist_and_perform_changes_nothing(world, kind):
    quiet = world()
    quiet.submit(kind)
    quiet.run()
    expected = quiet.task()
    assert expected.phase == "done"
    assert len(quiet.ledger.effects) == EFFECTS[kind]
    for instant in range(1, quiet.acts + 1):
        shaken = world()
        shaken.submit(kind)
        shaken.kill_at = frozenset({instant})
        shaken.run()
        assert shaken.deaths == 1, instant
        assert (shaken.task().phase, shaken.task().answer) == ("done", expected.answer), instant
        assert len(shaken.ledger.effects) == EFFECTS[kind], instant


def test_ten_deaths_at_random_instants_change_nothing_for_twelve_tasks(world):
    dice = random.Random(7)
    for _ in range(10):
        shaken = world()
        kinds = [kind for kind in EFFECTS for _ in range(4)]
        for number, kind in enumerate(kinds):
            shaken.submit(kind, f"t-{number}")
        shaken.kill_at = frozenset(dice.sample(range(1, 300), 10))
        shaken.run()
        assert shaken.deaths == 10
        assert {"done"} == {shaken.task(f"t-{number}").phase for number in range(len(kinds))}
        assert len(shaken.ledger.effects) == sum(EFFECTS[kind] for kind in kinds)


def test_a_task_whose_process_died_in_the_middle_of_a_step_is_told_as_resumed(world):
    shaken = world()
    shaken.submit("complaint")
    shaken.kill_at = frozenset({3})
    shaken.run()
    assert [("task_resumed", "plan")] == [(e["name"], e["step"]) for e in shaken.events()]
    assert shaken.task().resumes == 1


@pytest.mark.parametrize(("key_policy", "effects"), [("per_step", 1), ("per_try", 2)])
def test_a_key_of_the_step_makes_a_lost_reply_harmless_and_a_key_of_the_try_does_not(world, key_policy, effects):
    from target_stack.agent.task import CallTool, Unanswered

    shaken = world(key_policy=key_policy)
    lost = iter([Unanswered("lost", lost=True)])
    shaken.trouble = lambda command, _: next(lost, None) if isinstance(command, CallTool) and command.key else None
    shaken.submit("complaint")
    shaken.run()
    assert shaken.task().phase == "done"
    assert effects == len(shaken.ledger.effects)


def test_without_a_checkpoint_a_death_loses_every_task(world):
    shaken = world(checkpoint="memory")
    shaken.submit("complaint")
    shaken.kill_at = frozenset({9})
    shaken.run()
    assert shaken.deaths == 1
    assert shaken.store.find("t-1") is None
