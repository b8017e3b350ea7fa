"""The life of a part: restarts, backoff, holds, and news of earlier lives."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from target_stack.burdens import Burden, life_s, settings
from target_stack.lifecycle import (
    HOPELESS_DEATHS,
    LONGEST_BACKOFF_S,
    YOUNG_S,
    AskedToRestart,
    BecameReady,
    Begin,
    Died,
    Event,
    Hold,
    Lay,
    Life,
    Release,
    Struck,
    Tick,
    backoff_s,
    step,
)


def played(*steps: tuple[float, Event]) -> tuple[Life, list[float]]:
    """The life after some events, and the times at which the part was started."""
    life, starts = Life(), []
    for now, event in steps:
        life, start = step(life, event, now)
        starts += [now] if start else []
    return life, starts


def test_a_part_begins_once():
    life, starts = played((0.0, Begin()), (1.0, Begin()))
    assert starts == [0.0]
    assert life.state == "starting"


def test_a_part_that_serves_is_ready():
    life, _ = played((0.0, Begin()), (0.1, BecameReady(1)))
    assert life.state == "ready"


def test_a_part_that_was_asked_to_restart_is_not_ready_until_its_successor_is():
    life, starts = played((0.0, Begin()), (0.1, BecameReady(1)), (5.0, AskedToRestart()))
    assert (life.state, starts) == ("starting", [0.0])
    after, started = step(life, Died(1), 6.0)
    assert (after.state, after.incarnation, started) == ("starting", 2, True)


def test_a_part_that_is_dead_is_not_asked_to_restart():
    held = ((0.0, Begin()), (0.1, BecameReady(1)), (5.0, Hold("a")), (6.0, Died(1)))
    assert played(*held, (7.0, AskedToRestart())) == played(*held)


def test_a_death_after_a_long_life_is_mended_at_once():
    life, starts = played((0.0, Begin()), (0.1, BecameReady(1)), (YOUNG_S + 1, Died(1)))
    assert starts == [0.0, YOUNG_S + 1]
    assert life.state == "starting"


def test_a_quick_death_waits_for_its_backoff():
    died = ((0.0, Begin()), (0.1, Died(1)))
    assert played(*died)[0].restart_at == pytest.approx(0.3)
    assert played(*died, (0.29, Tick()))[1] == [0.0]
    assert played(*died, (0.31, Tick()))[1] == [0.0, 0.31]


@pytest.mark.parametrize(
    ("quick_deaths", "pause_s"), [(0, 0.0), (1, 0.2), (2, 0.4), (3, 0.8), (5, 3.2), (6, 5.0), (10_000, 5.0)]
)
def test_backoff_doubles_from_a_fifth_of_a_second_to_five(quick_deaths, pause_s):
    assert backoff_s(quick_deaths) == pytest.approx(pause_s)


def test_a_long_life_makes_the_quick_deaths_forgotten():
    life, _ = played((0.0, Begin()), (0.1, Died(1)), (0.31, Tick()), (0.4, BecameReady(2)), (10.0, Died(2)))
    assert life.quick_deaths == 0


def test_a_held_part_stays_dead_until_the_last_hold_is_released():
    held = ((0.0, Begin()), (0.1, BecameReady(1)), (5.0, Hold("a")), (5.1, Hold("b")), (6.0, Died(1)))
    assert played(*held)[0].state == "held"
    assert played(*held, (7.0, Tick()), (8.0, Release("a")))[1] == [0.0]
    life, starts = played(*held, (8.0, Release("a")), (9.0, Release("b")))
    assert starts == [0.0, 9.0]
    assert life.holds == ()


def test_a_release_does_not_wait_for_a_backoff():
    _, starts = played((0.0, Begin()), (0.1, Hold("a")), (0.2, Died(1)), (0.21, Release("a")))
    assert starts == [0.0, 0.21]


def test_a_hold_on_a_living_part_changes_nothing_else():
    life, starts = played((0.0, Begin()), (0.1, BecameReady(1)), (0.2, Hold("a")), (0.3, Release("a")))
    assert (life.state, starts) == ("ready", [0.0])


def test_holding_and_releasing_twice_is_the_same_as_once():
    begun = ((0.0, Begin()), (0.1, BecameReady(1)))
    once, _ = played(*begun, (1.0, Hold("a")))
    assert played(*begun, (1.0, Hold("a")), (2.0, Hold("a")))[0] == once
    assert played(*begun, (1.0, Release("stranger")))[0] == played(*begun)[0]


def test_news_of_an_earlier_life_changes_nothing():
    now_second = ((0.0, Begin()), (5.0, Died(1)))
    life, _ = played(*now_second)
    assert life.incarnation == 2
    assert played(*now_second, (5.1, BecameReady(1)))[0] == life
    assert played(*now_second, (5.1, Died(1)))[0] == life


def test_a_part_that_was_never_ready_and_dies_young_each_time_is_hopeless():
    life, now = step(Life(), Begin(), 0.0)[0], 0.0
    for _ in range(HOPELESS_DEATHS):
        assert not life.hopeless
        life, _ = step(life, Died(life.incarnation), now)
        now = life.restart_at or now
        if not life.hopeless:
            life, _ = step(life, Tick(), now)
    assert life.hopeless
    assert not dataclasses.replace(life, was_ready=True).hopeless


def test_a_start_that_must_wait_waits_and_a_release_ends_the_wait():
    slow = ((0.0, Begin()), (0.1, BecameReady(1)), (3.0, Lay(Burden("a", start_delay_s=4))), (5.0, Died(1)))
    assert played(*slow, (8.9, Tick()))[1] == [0.0]
    assert played(*slow, (9.1, Tick()))[1] == [0.0, 9.1]
    assert played(*slow, (6.0, Release("a")))[1] == [0.0, 6.0]
    assert played(*slow, (6.0, Release("b")))[1] == [0.0]


def test_an_early_death_is_dealt_so_often_and_no_more():
    life, _ = played((0.0, Begin()), (1.0, Lay(Burden("a", life_s=0.5, deaths=2))))
    assert life_s(life.burdens) == 0.5
    for left in (0.5, None):
        life, _ = step(life, Struck(), 2.0)
        assert life_s(life.burdens) == left
    endless, _ = played((0.0, Begin()), (1.0, Lay(Burden("a", life_s=0.5))), (2.0, Struck()))
    assert life_s(endless.burdens) == 0.5


def test_of_two_burdens_the_shorter_life_and_the_later_settings_count_until_one_is_taken_away():
    one, other = Burden("a", life_s=2, settings={"seed": 1, "x": 1}), Burden("b", life_s=1, settings={"seed": 2})
    life, _ = played((0.0, Begin()), (1.0, Lay(one)), (2.0, Lay(other)))
    assert (life_s(life.burdens), settings(life.burdens)) == (1, {"seed": 2, "x": 1})
    life, _ = step(life, Release("b"), 3.0)
    assert (life_s(life.burdens), settings(life.burdens)) == (2, {"seed": 1, "x": 1})


EVENTS = st.one_of(
    st.just(Begin()),
    st.just(Tick()),
    st.just(AskedToRestart()),
    st.builds(BecameReady, st.integers(0, 4)),
    st.builds(Died, st.integers(0, 4)),
    st.builds(Hold, st.sampled_from("ab")),
    st.builds(Release, st.sampled_from("ab")),
    st.just(Struck()),
    st.builds(Lay, st.builds(Burden, st.sampled_from("ab"), st.floats(0, LONGEST_BACKOFF_S), st.none() | st.just(1.0))),
)


@given(st.lists(st.tuples(st.floats(0, 3), EVENTS), max_size=40))
def test_it_never_starts_what_is_held_or_alive_and_never_forgets_a_dead_one(events):
    life, now = Life(), 0.0
    for pause, event in events:
        now += pause
        before = life
        life, start = step(life, event, now)
        if start:
            assert before.phase == "dead" or isinstance(event, Died)
            assert not life.holds or isinstance(event, Begin)
            assert life.incarnation == before.incarnation + 1
        if life.begun and life.phase == "dead":
            assert life.restart_at is not None
            assert life.restart_at <= now + LONGEST_BACKOFF_S
