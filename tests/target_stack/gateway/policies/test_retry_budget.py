"""Retries stay within a tenth of the first tries plus a small burst, whatever fails."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from target_stack.gateway.policies.retry_budget import TokenBucketBudget, UnlimitedBudget, is_resend, make_retry_budget
from target_stack.gateway.policies.settings import RetryBudgetSettings

RULES = RetryBudgetSettings(ratio=0.1, burst=5)


@given(st.lists(st.booleans(), max_size=500))
def test_retries_never_exceed_burst_plus_ratio_of_first_tries(history: list[bool]) -> None:
    budget, firsts, retries = TokenBucketBudget(RULES), 0, 0
    for first in history:
        if first:
            budget.first_try()
            firsts += 1
        else:
            retries += budget.take_retry()
        assert retries <= RULES.burst + RULES.ratio * firsts + 1e-6
        assert 0 <= budget.tokens <= RULES.burst


@given(st.lists(st.booleans(), max_size=500))
def test_it_agrees_with_a_reference_in_whole_tenths(history: list[bool]) -> None:
    budget = TokenBucketBudget(RetryBudgetSettings(ratio=0.25, burst=5))  # quarters are exact in binary
    quarters = 20
    for first in history:
        if first:
            budget.first_try()
            quarters = min(20, quarters + 1)
        else:
            assert budget.take_retry() == (quarters >= 4)
            quarters -= 4 if quarters >= 4 else 0


def test_with_a_dependency_fully_down_amplification_tends_to_one_plus_ratio() -> None:
    budget, retries = TokenBucketBudget(RULES), 0
    for _ in range(10_000):
        budget.first_try()
        while budget.take_retry():
            retries += 1
    assert 1000 <= retries <= 1005


def test_a_fresh_budget_can_pay_its_burst() -> None:
    budget = TokenBucketBudget(RULES)
    assert [budget.take_retry() for _ in range(6)] == [True] * 5 + [False]


def test_the_unlimited_budget_always_pays() -> None:
    budget = make_retry_budget(RetryBudgetSettings(kind="unlimited"))
    assert isinstance(budget, UnlimitedBudget)
    assert all(budget.take_retry() for _ in range(1000))


@pytest.mark.parametrize("header", ["1", "01", "10", "9" * 5000])
def test_a_count_above_zero_is_a_resend(header: str) -> None:
    assert is_resend(header)


@pytest.mark.parametrize("header", [None, "", "0", "000", "-1", "+1", "1.5", " 1", "1_0", "soon", "\u0661", "\u00b2"])
def test_zero_and_nonsense_are_first_tries(header: str | None) -> None:
    assert not is_resend(header)
