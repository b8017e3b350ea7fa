"""Guards trip on enough bad outcomes, never on a handful, and only on measures that live traffic can show."""

import math
from dataclasses import replace

import pytest

from chaos.spec.model import Guard
from chaos.verdict.live import FEWEST_OUTCOMES, Guards, check_guard, guard_problem, live_value
from chaos.verdict.measures.catalog import MEASURES
from chaos.verdict.measures.degraded_ratio import DegradedRatio
from chaos.verdict.measures.recovery_time import RecoveryTime
from chaos.verdict.measures.shed_ratio import ShedRatio
from chaos.verdict.measures.success_ratio import SuccessRatio
from chaos.verdict.measures.ttft import Ttft
from tests.verdict.story import Story

GOOD = next(iter(Story().samples()))
FAILED = replace(GOOD, outcome="failed", first_token_s=None)
UNKNOWN = replace(GOOD, outcome="indeterminate")


def test_a_guard_trips_below_its_limit() -> None:
    guard = Guard(SuccessRatio(), below=0.5)
    tripped = check_guard(guard, [FAILED] * 8 + [GOOD] * 4)
    assert tripped is not None
    assert (tripped.guard, tripped.bound) == ("success_ratio over 5s", "not below 50%")
    assert check_guard(guard, [FAILED] * 4 + [GOOD] * 8) is None


def test_a_handful_of_outcomes_trips_nothing() -> None:
    assert check_guard(Guard(SuccessRatio(), below=0.5), [FAILED] * (FEWEST_OUTCOMES - 1)) is None


def test_an_indeterminate_request_counts_for_nothing() -> None:
    assert live_value(SuccessRatio(), [GOOD] * 10 + [UNKNOWN] * 90) == 1.0


def test_a_guard_of_one_load_ignores_the_others() -> None:
    assert live_value(SuccessRatio(load="batch"), [GOOD] * 20) is None


def test_users_who_wait_in_vain_trip_a_latency_guard() -> None:
    assert math.isinf(live_value(Ttft("p90"), [GOOD] * 10 + [FAILED] * 10) or 0)


@pytest.mark.parametrize(
    ("measure", "row"),
    [
        (DegradedRatio(reason="no_retrieval"), replace(GOOD, outcome="degraded", degraded="no_retrieval,canned")),
        (ShedRatio(), replace(GOOD, outcome="shed")),
    ],
)
def test_shares_are_counted_live_as_they_are_judged(measure: DegradedRatio | ShedRatio, row: object) -> None:
    assert live_value(measure, [GOOD] * 15 + [row] * 5) == 0.25  # type: ignore[list-item]  # row is a Sample


def test_what_cannot_be_watched_live_is_a_planning_problem() -> None:
    allowed = {measure.name for measure in MEASURES if measure.name in (guard_problem(RecoveryTime()) or "")}
    assert {"success_ratio", "degraded_ratio", "shed_ratio", "ttft"} <= allowed
    assert guard_problem(SuccessRatio()) is None


KNOWN = Guard(SuccessRatio(), below=0.97, usual=0.99)


def fed(guards: Guards, *outcomes: bool, rate_per_s: float = 20.0) -> int | None:
    """How many outcomes it took until a guard tripped; it is asked after each, as a run asks four times a second."""
    for number, good in enumerate(outcomes, 1):
        due = 1.0 + number / rate_per_s
        guards.feed(replace(GOOD if good else FAILED, request=number, intended_s=due, end_s=due + 0.1))
        if guards.tripped(due + 0.1):
            return number
    return None


def test_a_guard_that_knows_what_is_usual_trips_after_a_few_bad_outcomes_in_a_row() -> None:
    guards = Guards([KNOWN], length_s=50.0, moments=(15.0, 30.0))
    assert fed(guards, *([True] * 300), *([False] * 20)) in range(302, 307)
    tripped = guards.tripped(20.0)
    assert tripped is not None
    assert (tripped.guard, tripped.bound) == ("success_ratio", "not below 97%, usually 99%")
    assert (tripped.value, tripped.samples) == (0.0, 3)
    assert (tripped.likelihood_ratio or 0) >= 100


def test_the_usual_failures_of_a_long_run_trip_nothing() -> None:
    outcomes = [number % 100 != 50 for number in range(2000)]
    assert fed(Guards([KNOWN], length_s=100.0), *outcomes) is None


def test_what_is_usual_may_also_be_exceeded() -> None:
    guards = Guards([Guard(ShedRatio(), above=0.05, usual=0.01)], length_s=10.0)
    for number in range(12):
        guards.feed(replace(GOOD, outcome="shed", intended_s=number / 20, end_s=number / 20))
    tripped = guards.tripped(1.0)
    assert tripped is not None
    assert (tripped.value, tripped.bound) == (1.0, "not above 5%, usually 1%")


def test_guards_with_a_sliding_window_are_asked_as_before() -> None:
    guards = Guards([Guard(SuccessRatio(), below=0.5), KNOWN], length_s=50.0)
    assert fed(guards, *([False] * 3)) is not None
    assert fed(Guards([Guard(SuccessRatio(), below=0.5)]), *([True] * 100), *([False] * 60)) == 151
