"""What the gateway promises when engines fail, with its real policies. `make soak` plays more seeds."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from scenarios import (
    AMPLIFIED_AT_MOST,
    ROUTED_WITHIN_S,
    STALL_PERIOD_S,
    WAYS,
    out_after_freeze,
    outage,
    routed_after_loss,
)


@pytest.mark.parametrize("way", WAYS)
def test_a_minute_without_engines_costs_at_most_a_tenth_more_calls_and_tokens(way: str) -> None:
    found = outage(way, 1)
    assert max(found.calls, found.tokens) <= AMPLIFIED_AT_MOST


@pytest.mark.parametrize("way", ["busy", "failing"])
def test_the_budget_alone_holds_that_bound_without_any_breaker(way: str) -> None:
    found = outage(way, 2, "breaker_missing")
    assert max(found.calls, found.tokens) <= AMPLIFIED_AT_MOST


@pytest.mark.parametrize("currency", ["calls", "tokens"])
def test_without_the_budget_the_same_minute_costs_several_times_as_much(currency: str) -> None:
    assert getattr(outage("busy", 1, "retries_without_budget"), currency) > 2.5


def test_a_librarys_own_retries_break_the_bound_although_the_budget_holds() -> None:
    assert outage("busy", 1, "nested_retries").calls > 2.5


def test_nobody_is_sent_to_a_dead_replica_half_a_second_after_its_loss() -> None:
    assert routed_after_loss(1) <= ROUTED_WITHIN_S


def test_a_frozen_replica_is_out_of_rotation_within_two_stall_periods() -> None:
    assert out_after_freeze(1) <= 2 * STALL_PERIOD_S


@pytest.mark.parametrize("weakness", ["stall_watched_by_running_only", "health_by_status_only"])
def test_whoever_believes_the_frozen_engine_keeps_it(weakness: str) -> None:
    assert out_after_freeze(1, weakness) == float("inf")
