"""Retries stay within a tenth of what succeeds plus a small burst, in calls and in tokens, whatever fails."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from reference_retry_budget import mismatch

from target_stack.gateway.policies.retry_budget import TokenBucketBudget, UnlimitedBudget, is_resend, make_retry_budget
from target_stack.gateway.policies.settings import RetryBudgetSettings

RULES = RetryBudgetSettings(ratio=0.1, burst=5, work_burst=1000)
HISTORIES = st.lists(st.tuples(st.booleans(), st.integers(0, 400)), max_size=300)


@given(HISTORIES)
def test_retries_stay_within_burst_plus_ratio_of_successes_in_both_currencies(
    history: list[tuple[bool, int]],
) -> None:
    budget = TokenBucketBudget(RULES)
    earned, paid = [], []
    for success, work in history:
        if success:
            budget.succeeded(work)
            earned.append(work)
        elif budget.take_retry(work):
            paid.append(work)
        assert len(paid) <= RULES.burst + RULES.ratio * len(earned) + 1e-6
        assert sum(paid) <= RULES.work_burst + RULES.ratio * sum(earned) + 1e-6
        assert 0 <= budget.calls <= RULES.burst
        assert 0 <= budget.work <= RULES.work_burst


def test_the_budget_holds_what_a_closed_form_over_its_history_gives() -> None:
    """A sample; `make soak SOAK=policies` plays 100,000 sequences."""
    assert [] == [why for seed in range(2000) if (why := mismatch(seed))]


def test_with_a_dependency_fully_down_nothing_more_than_the_burst_is_paid() -> None:
    budget = TokenBucketBudget(RULES)
    assert 5 == sum(budget.take_retry(1) for _ in range(10_000))


def test_a_retry_is_paid_in_both_currencies_or_not_at_all() -> None:
    budget = TokenBucketBudget(RULES)
    assert [budget.take_retry(600), budget.take_retry(600), budget.take_retry(400)] == [True, False, True]
    assert (3, 0) == (budget.calls, budget.work)
    assert not budget.take_retry(1)


def test_a_request_larger_than_the_burst_of_work_is_never_retried() -> None:
    assert not TokenBucketBudget(RULES).take_retry(1001)


def test_a_fresh_budget_can_pay_its_burst() -> None:
    budget = TokenBucketBudget(RULES)
    assert [budget.take_retry(0) for _ in range(6)] == [True] * 5 + [False]


def test_the_unlimited_budget_always_pays() -> None:
    budget = make_retry_budget(RetryBudgetSettings(kind="unlimited"))
    assert isinstance(budget, UnlimitedBudget)
    assert all(budget.take_retry(10**9) for _ in range(1000))


@pytest.mark.parametrize("header", ["1", "01", "10", "9" * 5000])
def test_a_count_above_zero_is_a_resend(header: str) -> None:
    assert is_resend(header)


@pytest.mark.parametrize("header", [None, "", "0", "000", "-1", "+1", "1.5", " 1", "1_0", "soon", "\u0661", "\u00b2"])
def test_zero_and_nonsense_are_first_tries(header: str | None) -> None:
    assert not is_resend(header)
