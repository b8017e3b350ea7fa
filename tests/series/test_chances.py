"""How sure counts of runs make us, held against enumeration and simulation."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.series.chances import confidence, rarer_than, runs_to_exclude, share_of_clusters
from chaos.verdict.statistics import wilson

RUNS = st.integers(min_value=1, max_value=5000)


@given(RUNS)
def test_a_rate_is_excluded_exactly_when_it_would_have_shown_itself_19_times_in_20(runs: int) -> None:
    assert math.isclose(0.95, confidence(runs, rarer_than(runs)))


def test_the_rule_of_three_approximates_it() -> None:
    assert [True] * 3 == [math.isclose(3 / n, rarer_than(n), rel_tol=0.02) for n in (100, 300, 3000)]
    assert 1.0 == rarer_than(0)


@given(st.floats(min_value=1e-4, max_value=0.99))
def test_so_many_runs_exclude_a_rate_and_one_fewer_does_not(rate: float) -> None:
    runs = runs_to_exclude(rate)
    assert rarer_than(runs) <= rate * (1 + 1e-9)
    assert runs == 1 or rarer_than(runs - 1) > rate * (1 - 1e-9)


def test_59_runs_exclude_a_failure_in_every_twentieth() -> None:
    assert (59, 299) == (runs_to_exclude(0.05), runs_to_exclude(0.01))


CLUSTERS = st.lists(
    st.integers(min_value=1, max_value=400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
    min_size=1,
    max_size=12,
)


@given(CLUSTERS)
def test_an_interval_of_runs_holds_the_share_and_is_never_narrower_than_one_of_requests(
    clusters: list[tuple[int, int]],
) -> None:
    hits, sizes = zip(*clusters, strict=True)
    low, high = share_of_clusters(hits, sizes)
    alone = wilson(sum(hits), sum(sizes))
    slack = 1e-9
    assert 0 <= low <= alone[0] + slack
    assert alone[1] - slack <= high <= 1
    assert low - slack <= sum(hits) / sum(sizes) <= high + slack


def test_the_more_runs_differ_the_wider_the_interval() -> None:
    widths = [
        np.diff(share_of_clusters(hits, [100] * 4))[0]
        for hits in ([90, 90, 90, 90], [80, 100, 90, 90], [100, 100, 100, 60])
    ]
    assert all(a < b for a, b in pairwise(widths))


@pytest.mark.parametrize("runs", [3, 5, 10, 30])
def test_the_interval_holds_the_truth_as_often_as_it_says_when_runs_share_a_fate(runs: int) -> None:
    """Each run has its own chance (beta, mean 0.9, sigma 0.09). 10 % may miss; with requests as units half do."""
    dice = np.random.default_rng(20261130)
    fates = dice.beta(9, 1, size=(600, runs))
    hits = dice.binomial(300, fates)
    missed = sum(not low <= 0.9 <= high for low, high in (share_of_clusters(h, [300] * runs) for h in hits.tolist()))
    naive = sum(not low <= 0.9 <= high for low, high in (wilson(sum(h), 300 * runs) for h in hits.tolist()))
    assert missed / 600 < 0.14
    assert naive / 600 > 0.5
