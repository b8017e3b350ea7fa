"""No limit outlives the one around it, and a caller can only shorten its deadline."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from target_stack.gateway.policies.deadline import Deadline, asked_ms
from target_stack.gateway.policies.settings import DeadlineSettings

TIMES = st.floats(0, 1e6)
LENGTHS = st.floats(0.001, 1e4)


@given(now=TIMES, passed=LENGTHS, total=LENGTHS, asked=st.none() | st.floats(1, 1e7))
def test_every_tier_lies_within_the_one_above(now: float, passed: float, total: float, asked: float | None) -> None:
    deadline = Deadline.of(now, total, asked)
    budget = deadline.budget(now + passed, DeadlineSettings())
    assert budget.connect_at <= budget.first_token_at <= budget.end_at <= deadline.at <= now + total


def test_a_caller_can_shorten_but_not_lengthen() -> None:
    assert Deadline.of(10.0, 5.0, 2000).at == 12.0
    assert Deadline.of(10.0, 5.0, 60_000).at == 15.0


def test_the_header_carries_what_is_left_and_never_zero() -> None:
    deadline = Deadline.of(10.0, 5.0)
    assert deadline.header(11.0) == "4000"
    assert deadline.header(99.0) == "1"


def test_a_part_gets_its_own_limit_inside_the_whole() -> None:
    deadline = Deadline.of(0.0, 1.0)
    assert deadline.within(0.0, 0.4).at == 0.4
    assert deadline.within(0.9, 0.4).at == 1.0


@pytest.mark.parametrize("text", ["0", "-5", "nan", "inf", "soon"])
def test_a_deadline_that_is_no_positive_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        asked_ms(text)


@pytest.mark.parametrize(
    ("limits", "named"),
    [
        ({"total_s": 1.0}, "per_try_s"),
        ({"first_token_s": 16.0}, "first_token_s"),
        ({"connect_s": 2.0}, "connect_s"),
        ({"vector_store_s": 0.5}, "vector_store_s"),
    ],
)
def test_limits_that_contradict_each_other_are_refused_by_name(limits: dict[str, float], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        DeadlineSettings(**limits)
