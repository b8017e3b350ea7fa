"""Full jitter: anything from nothing to a bound that doubles and is capped."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from target_stack.gateway.policies.backoff import asked_pause_s, bound_s, half, pause_s
from target_stack.gateway.policies.settings import BackoffSettings

RULES = BackoffSettings(base_s=0.1, cap_s=1.0)


def test_the_bound_doubles_up_to_the_cap() -> None:
    assert [bound_s(RULES, retry) for retry in (1, 2, 3, 4, 5, 9)] == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


@given(retry=st.integers(1, 10_000), seed=st.integers())
def test_a_pause_lies_between_nothing_and_the_bound(retry: int, seed: int) -> None:
    assert 0 <= pause_s(RULES, retry, random.Random(seed)) <= bound_s(RULES, retry)


def test_pauses_are_spread_over_the_whole_range() -> None:
    rng = random.Random(3)
    pauses = [pause_s(RULES, 4, rng) for _ in range(1000)]
    assert 0.35 < sum(pauses) / len(pauses) < 0.45
    assert min(pauses) < 0.05
    assert max(pauses) > 0.75


def test_no_backoff_retries_at_once() -> None:
    assert pause_s(BackoffSettings(kind="none"), 3, random.Random(1)) == 0.0


def test_without_jitter_all_that_failed_together_come_back_together() -> None:
    def moments(kind: str) -> set[float]:
        rules = BackoffSettings(kind=kind, base_s=0.1, cap_s=1.0)
        rng = random.Random(3)
        return {pause_s(rules, 1, rng) for _ in range(200)}

    assert (1, 200) == (len(moments("exponential")), len(moments("full_jitter")))


def test_the_half_in_which_a_pause_fell_shows_whether_there_is_jitter() -> None:
    assert [half(RULES, 1, pause) for pause in (0.0, 0.049, 0.05, 0.1)] == ["first", "first", "second", "second"]
    assert half(RULES, 1, 3.02, asked_s=3.0) == "first"


@given(retry=st.integers(1, 100), asked_s=st.floats(0, 60), seed=st.integers())
def test_nobody_comes_before_the_time_that_was_asked_for_nor_all_at_its_end(
    retry: int, asked_s: float, seed: int
) -> None:
    pause = pause_s(RULES, retry, random.Random(seed), asked_s)
    assert asked_s <= pause <= asked_s + bound_s(RULES, retry)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [("3", 3.0), ("0", 0.0), (None, 0.0), ("", 0.0), ("-1", 0.0), ("1.5", 0.0), ("soon", 0.0), ("9" * 400, 0.0)],
)
def test_retry_after_is_read_as_whole_seconds_and_nonsense_as_none(header: str | None, seconds: float) -> None:
    assert seconds == asked_pause_s(header)
