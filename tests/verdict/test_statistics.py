"""Intervals hold what they promise, checked against textbook values, exact sums and simulation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.verdict.statistics import (
    binomial_cumulative,
    bootstrap_ratio,
    quantile,
    quantile_interval,
    requests_to_settle,
    student,
    wilson,
)


def test_wilson_matches_published_values() -> None:
    """81 of 263 at 95 % two-sided: 0.255 to 0.366 (Newcombe 1998, table I)."""
    assert tuple(round(side, 3) for side in wilson(81, 263, z=1.96)) == (0.255, 0.366)


def test_a_clean_sheet_upholds_99_percent_from_268_requests_on() -> None:
    assert [wilson(n, n)[0] >= 0.99 for n in (267, 268)] == [False, True]
    assert requests_to_settle(1.0, 0.99) == 268


@given(st.integers(1, 2000), st.data())
def test_wilson_holds_its_share(n: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, n))
    low, high = wilson(hits, n)
    assert 0 <= low <= hits / n + 1e-12
    assert hits / n - 1e-12 <= high <= 1


@given(st.floats(0.01, 0.999), st.floats(0.01, 0.99))
def test_the_size_that_settles_really_settles(share: float, bound: float) -> None:
    """At that size the interval clears the bound, apart from rounding to whole requests."""
    needed = requests_to_settle(share, bound)
    if needed is None or needed > 10**6:
        return
    n = needed * 4
    low, high = wilson(round(share * n), n)
    assert low > bound or high < bound or abs(round(share * n) / n - bound) < abs(share - bound)


@pytest.mark.parametrize("truth", [0.5, 0.9, 0.99])
def test_a_true_share_on_the_bound_is_rarely_judged_wrongly(truth: float) -> None:
    """Exact, by summing the binomial: at most 7 % wrongly upheld and 10.5 % wrongly refuted at any of these sizes."""
    for n in (100, 268, 400, 900, 1800):
        share = np.diff(binomial_cumulative(n, truth), prepend=0.0)
        sides = np.array([wilson(hits, n) for hits in range(n + 1)])
        assert share[sides[:, 0] >= truth].sum() <= 0.07
        assert share[sides[:, 1] < truth].sum() <= 0.105


def test_a_share_on_its_bound_is_never_settled() -> None:
    assert requests_to_settle(0.99, 0.99) is None


def test_a_quantile_is_a_value_that_was_seen() -> None:
    values = np.array([5.0, 1.0, math.inf, 2.0])
    assert [1.0, 2.0, 5.0, math.inf] == [quantile(values, q) for q in (0.25, 0.5, 0.75, 0.99)]


def test_a_p99_of_few_values_has_no_upper_limit() -> None:
    """Below 299 values no order statistic bounds a p99 from above with 95 %: 0.99 ** 298 is just over 5 %."""
    assert math.isinf(quantile_interval(np.arange(298.0), 0.99)[1])
    assert quantile_interval(np.arange(299.0), 0.99)[1] == 298.0


@pytest.mark.parametrize(("q", "n"), [(0.5, 40), (0.9, 100), (0.99, 600)])
def test_the_interval_of_a_quantile_misses_at_most_5_percent_on_each_side(q: float, n: int) -> None:
    dice = np.random.default_rng(11)
    truth = -math.log(1 - q)
    sides = [quantile_interval(dice.exponential(size=n), q) for _ in range(2000)]
    assert sum(low > truth for low, _ in sides) / 2000 <= 0.065
    assert sum(high < truth for _, high in sides) / 2000 <= 0.065


def test_clustered_values_get_a_wider_interval() -> None:
    values = np.random.default_rng(5).exponential(size=1000)
    alone, clustered = quantile_interval(values, 0.5), quantile_interval(values, 0.5, independent=50)
    assert clustered[0] < alone[0] < alone[1] < clustered[1]


def test_a_million_values_are_no_trouble() -> None:
    low, high = quantile_interval(np.random.default_rng(1).exponential(size=1_000_000), 0.99)
    assert 4.5 < low < high < 4.7


def test_the_bootstrap_holds_the_ratio_and_repeats_itself() -> None:
    dice = np.random.default_rng(3)
    before, during = dice.poisson(20, 15).astype(float), dice.poisson(60, 15).astype(float)
    users = np.full(15, 20.0)
    low, high = bootstrap_ratio((during, users), (before, users))
    assert low < during.sum() / before.sum() < high
    assert (low, high) == bootstrap_ratio((during, users), (before, users))


def test_a_ratio_over_nothing_has_no_limit() -> None:
    zeros, ones = np.zeros(5), np.ones(5)
    assert (0.0, math.inf) == bootstrap_ratio((ones, ones), (zeros, zeros))


@pytest.mark.parametrize(
    ("freedom", "quantile"),
    [(1, 6.3138), (2, 2.9200), (3, 2.3534), (4, 2.1318), (10, 1.8125), (30, 1.6973), (120, 1.6577), (1e9, 1.6449)],
)
def test_student_agrees_with_the_printed_tables(freedom: float, quantile: float) -> None:
    assert quantile == pytest.approx(student(0.05, freedom), abs=1e-4)


def test_student_of_freedom_between_whole_numbers_lies_between_theirs() -> None:
    assert student(0.05, 4) > student(0.05, 4.5) > student(0.05, 5)
