"""The model does what queueing theory says, conserves every request, and is the same for the same seed."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from chaos.tipping.evidence import view_of
from chaos.tipping.model import ABANDONED, GOOD, REFUSED, Trace, play
from chaos.tipping.system import Breaker, Budget, Cache, Crowding, System, Trigger

CALM = Trigger("capacity", 0.0, 1.0)
CUT = Trigger("capacity", 5.0, 0.2)


def played(system: System, trigger: Trigger = CUT, seed: int = 1, after_s: float = 40.0) -> Trace:
    return play(system, trigger, seed, before_s=10.0, after_s=after_s)


def sends_a_request(trace: Trace, since: float) -> float:
    late = [a for a in trace.attempts if trace.due_s[a.request] >= since]
    return len(late) / len({a.request for a in late})


def test_the_wait_in_an_undisturbed_line_is_that_of_an_m_m_1_queue() -> None:
    """Mean time in the system 1 / (mu - lambda), Kleinrock, Queueing Systems I, section 3.2."""
    trace = played(System(50.0, 100.0, timeout_s=10.0), CALM, after_s=600.0)
    waits = np.array([a.end_s - a.sent_s for a in trace.attempts])
    assert pytest.approx(1 / 50, rel=0.1) == waits.mean()


def test_without_dice_everybody_is_served_in_its_own_service_time() -> None:
    trace = played(System(50.0, 100.0, timeout_s=1.0, slots=4, even=True), CALM)
    assert {0.04} == {round(a.end_s - a.sent_s, 9) for a in trace.attempts}


def test_work_under_a_cut_takes_as_much_longer_and_none_is_done_without_capacity() -> None:
    third = played(System(1.0, 10.0, timeout_s=9.0, even=True), Trigger("capacity", 5.0, 1 / 3))
    took = {round(a.end_s - a.sent_s, 6) for a in third.attempts}
    assert {0.1, 0.3} == took
    nothing = played(System(1.0, 10.0, timeout_s=99.0, even=True), Trigger("capacity", 5.5, 0.0))
    assert not [a for a in nothing.attempts if 10.0 <= a.end_s < 15.5]


@pytest.mark.parametrize(
    "system",
    [
        System(60.0, 100.0, 1.0, attempts=4),
        System(60.0, 100.0, 1.0, attempts=4, queue=50, backoff_s=0.2),
        System(60.0, 100.0, 1.0, attempts=4, budget=Budget(0.1), cancels=True, slots=3),
        System(60.0, 100.0, 1.0, attempts=2, cache=Cache(0.5), breaker=Breaker(), crowding=Crowding(100, 0.5)),
    ],
    ids=["plain", "bounded", "budgeted", "everything"],
)
def test_every_request_ends_once_and_every_attempt_ends_in_time(system: System) -> None:
    trace = played(system)
    finals = view_of(trace).evidence.samples.finals
    assert len(trace.due_s) == len(finals)
    assert len(set(finals.request.tolist())) == len(finals)
    for attempt in trace.attempts:
        assert 1 <= attempt.number <= system.attempts
        assert attempt.sent_s <= attempt.end_s <= attempt.sent_s + system.timeout_s + 1e-9
        assert attempt.ending in (ABANDONED, GOOD, REFUSED)
    assert all(a.number == 1 or a.sent_s > trace.due_s[a.request] - 1e-9 for a in trace.attempts)


def test_the_same_seed_gives_the_same_run_and_another_one_another() -> None:
    system = System(60.0, 100.0, 1.0, attempts=3, cache=Cache(0.3))
    one, two, other = (played(system, seed=seed) for seed in (1, 1, 2))
    assert one.attempts == two.attempts
    assert one.attempts != other.attempts


def test_a_budget_bounds_resends_to_its_share_of_first_tries() -> None:
    unbounded = System(60.0, 100.0, 1.0, attempts=4)
    assert pytest.approx(4.0, abs=0.1) == sends_a_request(played(unbounded), 20.0)
    assert sends_a_request(played(replace(unbounded, rate_per_s=95.0, budget=Budget(0.2))), 20.0) <= 1.21


def test_a_full_line_refuses_at_once_and_holds_no_more_than_it_may() -> None:
    trace = played(System(80.0, 100.0, 1.0, queue=30))
    refused = [a for a in trace.attempts if a.ending == REFUSED]
    assert refused
    assert all(a.end_s == a.sent_s for a in refused)
    waiting = view_of(trace).evidence.readings.select("gateway_queue_depth").value
    assert 30 == waiting.max()


def test_work_of_clients_that_have_left_is_not_begun_where_it_is_cancelled() -> None:
    wasted = [a for a in played(System(80.0, 100.0, 0.5, cancels=True)).attempts if a.started_s >= a.sent_s + 0.5]
    assert all(math.isinf(a.started_s) for a in wasted)
    kept = [a for a in played(System(80.0, 100.0, 0.5)).attempts if a.started_s >= a.sent_s + 0.5]
    assert any(math.isfinite(a.started_s) for a in kept)


def test_a_flushed_cache_fills_again_from_good_answers_only() -> None:
    warm = played(System(90.0, 100.0, 1.0, cache=Cache(0.5, keys=20)), Trigger("flush", 0.0))
    assert {True} == {hit for t, hit in warm.looks if t > 25.0}
    cold = played(System(300.0, 100.0, 1.0, cache=Cache(0.8, keys=5000)), Trigger("flush", 0.0))
    late = [hit for t, hit in cold.looks if t > 25.0]
    assert sum(late) < 0.3 * len(late)


def test_a_breaker_refuses_while_it_is_open_and_closes_when_probes_succeed() -> None:
    trace = played(System(50.0, 100.0, 1.0, breaker=Breaker(calls=20, open_s=2.0)), Trigger("capacity", 6.0, 0.0))
    states = [state for _, state in trace.states]
    assert (2, 0) == (states[0], states[-1])
    opened = trace.states[0][0]
    during = [a for a in trace.attempts if opened < a.sent_s < opened + 2.0]
    assert {REFUSED} == {a.ending for a in during}


def test_a_surge_is_a_trigger_too() -> None:
    trace = played(System(50.0, 100.0, 1.0, even=True), Trigger("load", 5.0, 4.0))
    assert 1000 == ((trace.due_s >= 10.0) & (trace.due_s < 15.0)).sum()


def test_a_loop_that_is_cut_is_gone() -> None:
    system = System(90.0, 100.0, 1.0, attempts=3, cache=Cache(0.4), breaker=Breaker())
    assert ("retries", "cache", "breaker", "queue") == system.loops()
    for loop in system.loops():
        assert loop not in system.without(loop).loops()
    assert pytest.approx(54.0) == system.without("cache").rate_per_s
