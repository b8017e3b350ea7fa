"""Whose turn it is, against a plain reading of the rules."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from target_stack.agent.queueing import Waiting, choose, circle, next_due

NAMES = ("a", "b", "c")
WAITING = st.builds(
    Waiting,
    id=st.uuids().map(str),
    priority=st.integers(0, 9),
    created=st.floats(0, 100),
    deadline=st.floats(100, 200),
    not_before=st.floats(0, 150),
    waits_for=st.lists(st.sampled_from(NAMES), max_size=2).map(tuple),
    wait_until=st.none() | st.floats(50, 200),
)


def may_go(one, ended, now):
    if now >= one.deadline:
        return True
    if all(name in ended for name in one.waits_for):
        return now >= one.not_before
    return one.wait_until is not None and now >= one.wait_until


@given(st.lists(WAITING, max_size=6), st.sets(st.sampled_from(NAMES)), st.floats(100, 220))
def test_the_chosen_task_may_go_and_none_that_may_has_more_priority_with_its_age(queue, ended, now):
    chosen = choose(queue, ended, now, 2.0)
    able = [one for one in queue if may_go(one, ended, now)]
    assert (chosen is None) == (not able)
    if chosen is not None:
        best = max(one.priority + (now - one.created) / 2.0 for one in able)
        assert chosen in able
        assert chosen.priority + (now - chosen.created) / 2.0 == best


@given(st.lists(WAITING, min_size=1, max_size=6), st.sets(st.sampled_from(NAMES)))
def test_something_may_go_exactly_from_the_next_due_time_on(queue, ended):
    due = next_due(queue, ended)
    assert choose(queue, ended, due, 2.0) is not None
    assert choose(queue, ended, due - 0.001, 2.0) is None


def waiting(name, priority, created):
    return Waiting(name, priority, created, 1e9, 0.0, (), None)


def test_a_low_priority_is_overtaken_by_a_high_one_but_not_for_ever():
    assert choose([waiting("low", 1, 0), waiting("high", 5, 0)], (), 10, 2.0).id == "high"
    assert choose([waiting("low", 1, 0), waiting("high", 5, 10)], (), 10, 2.0).id == "low"


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")), max_size=12))
def test_a_circle_is_found_exactly_when_a_way_leads_home(edges):
    reach = {"a"}
    for _ in range(6):
        reach |= {there for here, there in edges if here in reach}
    way = circle(("a",), lambda name: [there for here, there in edges if here == name], ("f",))
    assert bool(way) == ("f" in reach)
    if way:
        assert (way[0], way[-1]) == ("a", "f")
        assert all(pair in edges for pair in pairwise(way))
