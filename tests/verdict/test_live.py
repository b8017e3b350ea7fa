"""Guards trip on enough bad outcomes, never on a handful, and only on measures that live traffic can show."""

import math
from dataclasses import replace

import pytest

from chaos.spec.model import Guard
from chaos.verdict.live import FEWEST_OUTCOMES, check_guard, guard_problem, live_value
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
