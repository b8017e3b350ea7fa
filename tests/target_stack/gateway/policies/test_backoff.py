"""Full jitter: anything from nothing to a bound that doubles and is capped."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from target_stack.gateway.policies.backoff import bound_s, pause_s
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
