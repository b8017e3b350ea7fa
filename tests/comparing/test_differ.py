"""Which differences are real: intervals apart, a margin between single runs, never one observation alone."""

import math
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.comparing.differ import Difference, differences, regressed
from chaos.comparing.side import Side
from chaos.verdict.outcome import Judged
from chaos.verdict.statistics import quantile, quantile_interval
from tests.comparing.sides import of_verdict, run_side, series_side, with_answer
from tests.series.made import run


def by_name(first: Side, last: Side) -> Mapping[str, Difference]:
    return {difference.name: difference for difference in differences(first, last)}


def waits(value: float | None, low: float, high: float) -> Side:
    """A run whose p95 is this."""
    return of_verdict(with_answer(run("u"), "no slow failure", value=value, interval=(low, high)))


def test_a_refuted_run_is_worse_than_an_upheld_one_and_the_other_way_round_better() -> None:
    worse, better = (by_name(run_side(a), run_side(b)) for a, b in ("ur", "ru"))
    broken = ["users are served", "no slow failure", "quick recovery"]
    assert ["worse"] * 3 == [worse[name].change for name in broken]
    assert ["better"] * 3 == [better[name].change for name in broken]
    assert (True, False) == (regressed(tuple(worse.values())), regressed(tuple(better.values())))


@given(st.sampled_from("uri"))
def test_nothing_differs_from_itself(letter: str) -> None:
    found = by_name(run_side(letter), run_side(letter))
    assert {"not shown", "unknown"} >= {difference.change for difference in found.values()}


@pytest.mark.parametrize(
    ("last", "change"),
    [
        ((0.080, 0.078, 0.082), "not shown"),
        ((0.074, 0.0735, 0.0745), "not shown"),
        ((0.090, 0.085, 0.095), "worse"),
        ((0.050, 0.048, 0.052), "better"),
        ((None, 30.0, math.inf), "worse"),
    ],
)
def test_a_wait_differs_when_its_intervals_lie_apart_by_more_than_a_tenth(
    last: tuple[float | None, float, float], change: str
) -> None:
    """70 ms (67 to 73) against: overlapping to the eye but apart, too near to matter, slower, quicker, never."""
    first = waits(0.070, 0.067, 0.073)
    low = waits(0.070, 0.067, 0.079) if last[0] == 0.080 else first
    assert change == by_name(low, waits(*last))["no slow failure"].change


@given(*(st.floats(min_value=0, max_value=100) for _ in range(4)))
def test_overlapping_intervals_never_make_a_difference_and_swapping_sides_swaps_the_answer(
    one: float, other: float, width: float, other_width: float
) -> None:
    first = waits(one + width / 2, one, one + width + 0.01)
    last = waits(other + other_width / 2, other, other + other_width + 0.01)
    change = by_name(first, last)["no slow failure"].change
    if max(one, other) <= min(one + width, other + other_width):
        assert change == "not shown"
    opposite = {"worse": "better", "better": "worse", "not shown": "not shown"}
    back = by_name(last, first)["no slow failure"].change
    assert back in {opposite[change], "not shown"} or change == "not shown"


def test_what_one_run_saw_once_differs_only_across_the_bound() -> None:
    """Recovery after 2 s here and 4 s there, both allowed: no two runs are equal to the second."""
    slower = with_answer(run("u"), "quick recovery", value=4.0, interval=(3.0, 4.0))
    found = by_name(run_side("u"), of_verdict(slower))["quick recovery"]
    assert ("unknown", True) == (found.change, "a series of runs would tell" in found.why)


def test_numbers_of_a_run_whose_preconditions_failed_make_no_difference() -> None:
    assert {"unknown"} == {d.change for d in differences(run_side("r"), run_side("i"))}


def test_what_only_one_side_measured_is_unknown() -> None:
    missing = with_answer(run("u"), "users are served", value=None, interval=None)
    assert "unknown" == by_name(run_side("u"), of_verdict(missing))["users are served"].change
    renamed = with_answer(run("u"), "users are served", name="others are served")
    found = by_name(run_side("u"), of_verdict(renamed))
    assert ("unknown", "unknown") == (found["users are served"].change, found["others are served"].change)


def test_with_a_bound_on_both_sides_neither_direction_is_better() -> None:
    both = {"at_least": 0.01, "at_most": 9.0}
    first = with_answer(run("u"), "no slow failure", value=1.0, interval=(0.9, 1.1), bound=both)
    last = with_answer(run("u"), "no slow failure", value=2.0, interval=(1.9, 2.1), bound=both)
    found = by_name(of_verdict(first), of_verdict(last))["no slow failure"]
    assert ("other", False) == (found.change, regressed((found,)))


def test_series_that_differ_in_every_run_differ_and_a_series_of_few_runs_cannot_tell() -> None:
    many = by_name(series_side("uuuuuuuu"), series_side("rrrrrrrr"))
    assert ("worse", "worse") == (many["users are served"].change, many["no slow failure"].change)
    few = by_name(series_side("uu"), series_side("rr"))
    assert "not shown" == few["no slow failure"].change


def test_one_bad_run_in_a_series_is_no_difference_of_series() -> None:
    found = by_name(series_side("uuuuuuuu"), series_side("uuuruuuu"))
    assert {"not shown"} == {d.change for d in found.values()} - {"unknown"}


def test_single_runs_on_correlated_noise_seldom_differ_and_a_run_half_as_quick_does() -> None:
    """AR(1) 0.98 on the log of 5,000 waits a run, 300 pairs; raw tests call 24 to 72 % of such pairs different. What
    overlap and margin leave of it is why the page sends the reader to a series.
    """
    dice = np.random.default_rng(20261130)
    alike = [by_name(side_of_noise(dice, 1.0), side_of_noise(dice, 1.0))["no slow failure"].real for _ in range(300)]
    apart = [by_name(side_of_noise(dice, 1.0), side_of_noise(dice, 2.0))["no slow failure"].real for _ in range(100)]
    assert sum(alike) / 300 <= 0.15
    assert sum(apart) / 100 >= 0.90


def side_of_noise(dice: np.random.Generator, slower: float) -> Side:
    """A run of 5,000 log-normal waits whose log-mean wanders."""
    steps = dice.normal(0, 0.05, 5000)
    mean = np.empty(5000)
    level = 0.0
    for i, step in enumerate(steps):
        level = 0.98 * level + step
        mean[i] = level
    found = 0.05 * slower * np.exp(mean + dice.normal(0, 0.3, 5000))
    answer: dict[str, object] = {"value": quantile(found, 0.95), "interval": quantile_interval(found, 0.95)}
    return of_verdict(with_answer(run("u"), "no slow failure", **answer))


def test_every_answer_of_a_run_can_be_a_side() -> None:
    """Whatever a measure says, a comparison of it does not raise."""
    for value, interval in ((None, None), (None, (1.0, math.inf)), (0.0, (0.0, 0.0)), (math.inf, (1.0, math.inf))):
        odd = with_answer(run("u"), "no slow failure", value=value, interval=interval)
        assert isinstance(odd.hypotheses[1], Judged)
        assert differences(run_side("u"), of_verdict(odd))
        assert differences(of_verdict(odd), run_side("u"))
