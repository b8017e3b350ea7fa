"""Replicas are wanted by what was seen over a window, at most once a cool-down, and never fewer during an incident."""

from __future__ import annotations

import pytest

from target_stack.gateway.policies.autoscale import Autoscaler, AutoscaleSettings, Wanted

RULES = AutoscaleSettings(window_s=10.0, cooldown_s=60.0, minimum=1, maximum=6, slots=10)


def watched(
    demand: int, *, seconds: int, replicas: int = 2, known: int = 2, policy: Autoscaler | None = None, start: int = 0
) -> list[tuple[int, Wanted]]:
    """Decisions, each with its second, when the same is seen every second."""
    policy = policy or Autoscaler(RULES)
    seen = [(second, policy.observe(second, demand, replicas, known)) for second in range(start, start + seconds)]
    return [(second, wanted) for second, wanted in seen if wanted]


def test_seventy_percent_for_a_window_wants_more() -> None:
    assert watched(14, seconds=30) == [(10, Wanted("up", 2, 3, 0.7))]


@pytest.mark.parametrize("demand", [7, 10, 13])
def test_between_the_thresholds_nothing_is_wanted(demand: int) -> None:
    assert watched(demand, seconds=300) == []


def test_thirty_percent_wants_fewer_but_never_below_the_minimum() -> None:
    assert watched(6, seconds=30) == [(10, Wanted("down", 2, 1, 0.3))]
    assert watched(0, seconds=300, replicas=1, known=1) == []


def test_demand_far_above_all_slots_wants_as_many_as_it_takes_but_never_above_the_maximum() -> None:
    assert watched(24, seconds=11)[0][1].wanted == 5  # half of fifty slots
    assert watched(500, seconds=11)[0][1].wanted == 6
    assert watched(500, seconds=300, replicas=6, known=6) == []


def test_between_two_decisions_a_cool_down_passes() -> None:
    assert [second for second, _ in watched(20, seconds=200)] == [10, 70, 130, 190]


def test_a_burst_shorter_than_the_window_decides_nothing() -> None:
    policy = Autoscaler(RULES)
    assert watched(8, seconds=20, policy=policy) == []
    assert watched(20, seconds=3, policy=policy, start=20) == []
    assert watched(8, seconds=20, policy=policy, start=23) == []


def test_a_lull_while_a_replica_is_out_of_rotation_takes_nothing_away() -> None:
    assert watched(0, seconds=300, replicas=1, known=2) == []


def test_demand_without_any_replica_is_no_missing_number_but_the_reason_to_start_one() -> None:
    assert watched(3, seconds=11, replicas=0) == [(10, Wanted("up", 0, 1, 1.0))]
    assert watched(0, seconds=11, replicas=0) == []


@pytest.mark.parametrize("broken", [{"down_at": 0.6}, {"up_at": 0.4}, {"slots": 0}])
def test_thresholds_that_chase_each_other_are_refused_at_start(broken: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="down_at < aim_at < up_at"):
        AutoscaleSettings(**broken)  # type: ignore[arg-type]  # numbers for numbers
