"""The breaker opens when it must, asks again a little at a time, and cannot be frozen by a lost permit."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from reference_breaker import mismatch

from target_stack.gateway.policies.breaker import Breaker, NoBreaker, Permit, State, make_breaker
from target_stack.gateway.policies.settings import BreakerSettings

RULES = BreakerSettings(
    window_s=10,
    minimum_calls=4,
    failure_ratio=0.5,
    consecutive_failures=3,
    slow_ratio=0.75,
    open_s=5,
    open_jitter=0.0,
    half_open_permits=2,
    half_open_successes=2,
    permit_lease_s=8,
)
SLOW_S = 1.0


def breaker(rules: BreakerSettings = RULES, changes: list[tuple[float, State]] | None = None, seed: int = 1) -> Breaker:
    told = changes if changes is not None else []
    return Breaker(
        rules, slow_call_s=SLOW_S, rng=random.Random(seed), on_change=lambda now, state: told.append((now, state))
    )


def granted(one: Breaker, now: float) -> Permit:
    permit = one.acquire(now)
    assert permit is not None
    return permit


def opened(rules: BreakerSettings = RULES) -> Breaker:
    one = breaker(rules)
    for _ in range(3):
        granted(one, 0.0).failure(0.0)
    assert one.state == "open"
    return one


def test_three_failures_in_a_row_open_it_and_no_call_is_let_through() -> None:
    assert opened().acquire(4.9) is None


def test_a_success_between_failures_starts_the_row_again() -> None:
    one = breaker(BreakerSettings(minimum_calls=1000, consecutive_failures=3))
    for _ in range(40):
        granted(one, 0.0).failure(0.0)
        granted(one, 0.0).failure(0.0)
        granted(one, 0.0).success(0.0, 0.1)
    assert one.state == "closed"


def test_the_ratio_counts_only_with_enough_calls() -> None:
    one = breaker(BreakerSettings(minimum_calls=4, consecutive_failures=99))
    states = []
    for _ in range(4):
        granted(one, 0.0).failure(0.0)
        states.append(one.state)
    assert states == ["closed", "closed", "closed", "open"]


def test_failures_older_than_the_window_are_forgotten() -> None:
    one = breaker(BreakerSettings(minimum_calls=4, consecutive_failures=99, window_s=10))
    for now in (0.0, 0.0, 0.0, 20.0):
        granted(one, now).failure(now)
    assert one.state == "closed"


def test_slow_successes_open_it() -> None:
    one = breaker()
    for _ in range(4):
        granted(one, 0.0).success(0.0, SLOW_S + 0.1)
    assert one.state == "open"


def test_it_tells_each_change_with_its_time() -> None:
    changes: list[tuple[float, State]] = []
    one = breaker(changes=changes)
    for _ in range(3):
        granted(one, 1.0).failure(1.0)
    granted(one, 7.0).success(7.5, 0.1)
    granted(one, 8.0).success(8.5, 0.1)
    assert changes == [(1.0, "open"), (7.0, "half_open"), (8.5, "closed")]


def test_half_open_lets_only_its_permits_out() -> None:
    one = opened()
    assert [one.acquire(5.0) is not None for _ in range(3)] == [True, True, False]


def test_one_failure_in_half_open_opens_again() -> None:
    one = opened()
    granted(one, 5.0).failure(5.1)
    assert one.acquire(10.0) is None
    assert one.acquire(10.1) is not None


def test_a_slow_probe_opens_again() -> None:
    one = opened()
    granted(one, 5.0).success(7.0, 2.0)
    assert one.state == "open"


def test_a_cancelled_probe_gives_its_permit_back() -> None:
    one = opened()
    for _ in range(50):
        granted(one, 5.0).cancel()
    assert one.state == "half_open"


def test_permits_that_nobody_settles_cannot_freeze_it() -> None:
    one = opened()
    assert one.acquire(5.0)
    assert one.acquire(5.0)
    assert one.acquire(13.0) is None  # lease of 8 s not over
    assert one.acquire(13.1) is None  # lost permits count as a failure: open again
    assert one.state == "open"
    assert one.acquire(18.2) is not None


def test_a_result_from_before_the_opening_does_not_close_it() -> None:
    one = breaker()
    old = [granted(one, 0.0) for _ in range(2)]
    for _ in range(3):
        granted(one, 0.0).failure(0.0)
    assert one.acquire(5.0)
    for permit in old:
        permit.success(5.0, 0.1)
    assert one.state == "half_open"


def test_a_stream_that_breaks_after_its_first_token_counts_as_a_failure() -> None:
    one = breaker()
    for _ in range(3):
        one.late_failure(0.0)
    assert one.state == "open"


@given(seed=st.integers(), jitter=st.floats(0, 1))
def test_open_time_is_jittered_within_its_bounds(seed: int, jitter: float) -> None:
    rules = BreakerSettings(consecutive_failures=1, open_s=10, open_jitter=jitter)
    one = breaker(rules, seed=seed)
    granted(one, 0.0).failure(0.0)
    assert one.acquire(10 * (1 - jitter) - 1e-6) is None
    assert one.acquire(10 * (1 + jitter) + 1e-6) is not None


def test_breakers_that_open_together_do_not_ask_again_together() -> None:
    rules = BreakerSettings(consecutive_failures=1, open_s=10, open_jitter=0.2)
    rng = random.Random(7)
    many = [Breaker(rules, slow_call_s=1, rng=rng) for _ in range(100)]
    for one in many:
        granted(one, 0.0).failure(0.0)
    assert 20 < sum(one.acquire(10.0) is not None for one in many) < 80


def test_the_missing_breaker_always_calls() -> None:
    one = make_breaker(BreakerSettings(kind="none"), limit_s=1.0, rng=random.Random(1))
    assert isinstance(one, NoBreaker)
    for _ in range(100):
        permit = one.acquire(0.0)
        assert permit is not None
        permit.failure(0.0)
    assert one.state == "closed"


def test_the_breaker_does_what_an_independent_model_derives_from_its_history() -> None:
    """A sample; `make soak SOAK=policies` plays 100,000 sequences."""
    assert [] == [why for seed in range(2000) if (why := mismatch(seed))]


def test_a_count_window_judges_by_the_last_calls_however_long_they_took() -> None:
    rules = BreakerSettings(kind="count", window_calls=4, minimum_calls=4, failure_ratio=0.75, consecutive_failures=99)
    one = breaker(rules)
    for now in (0.0, 1000.0):
        granted(one, now).success(now, 0.1)
    for now in (2000.0, 3000.0):
        granted(one, now).failure(now)
    assert one.state == "closed"
    granted(one, 4000.0).success(4000.0, 0.1)
    assert one.state == "closed"
    granted(one, 5000.0).failure(5000.0)
    assert one.state == "open"


@pytest.mark.parametrize("again", ["success", "failure", "cancel"])
def test_settling_a_permit_twice_does_nothing(again: str) -> None:
    one = opened()
    permit = granted(one, 5.0)
    permit.success(5.0, 0.1)
    getattr(permit, again)(*{"success": (5.0, 0.1), "failure": (5.0,), "cancel": ()}[again])
    assert one.state == "half_open"
