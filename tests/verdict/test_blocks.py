"""Drawing blocks of time: as wide as the noise is, as long as it remembers, and honest where nothing varies."""

import math

import numpy as np
import pytest

from chaos.verdict.blocks import (
    FEWEST_BLOCKS,
    block_length,
    correlation_time,
    draw,
    interval,
    quantiles,
    share_difference,
)
from chaos.verdict.statistics import quantile


def wave(persistence: float, n: int, seed: int = 3) -> np.ndarray:
    dice, level = np.random.default_rng(seed), [0.0]
    for step in dice.standard_normal(n + 200):
        level.append(persistence * level[-1] + step)
    return np.array(level[-n:])


@pytest.mark.parametrize(("persistence", "n"), [(0.0, 2000), (0.5, 4000), (0.9, 20_000)])
def test_the_correlation_time_of_ar1_is_found(persistence: float, n: int) -> None:
    """(1 + phi) / (1 - phi) slices."""
    truth = (1 + persistence) / (1 - persistence)
    assert truth == pytest.approx(correlation_time(wave(persistence, n)), rel=0.25)


def test_blocks_are_as_long_as_the_noise_remembers_and_leave_enough_of_them() -> None:
    assert 3 <= block_length(wave(0.0, 500)) <= 6
    assert block_length(wave(0.9, 500)) > 3 * block_length(wave(0.0, 500))
    assert block_length(wave(0.999, 90)) == 90 // FEWEST_BLOCKS


@pytest.mark.parametrize("level", [np.ones(50), np.zeros(50), np.ones(3)])
def test_where_nothing_varies_a_block_is_one_slice(level: np.ndarray) -> None:
    assert block_length(level) == 1


def test_a_draw_takes_as_much_as_was_seen_and_keeps_neighbours_together() -> None:
    draws = draw(np.random.default_rng(1), 12, 4)
    assert {12.0} == set(draws.sums(np.ones((12, 1)))[:, 0])
    first_two = np.zeros((12, 2))
    first_two[4, 0] = first_two[5, 1] = 1
    taken = draws.sums(first_two)
    assert np.corrcoef(taken[:, 0], taken[:, 1])[0, 1] > 0.5


@pytest.mark.parametrize("q", [0.5, 0.9, 0.99])
def test_quantiles_of_draws_spread_around_the_quantile(q: float) -> None:
    values = np.random.default_rng(5).exponential(size=4000)
    found = quantiles(values, np.arange(4000) // 40, draw(np.random.default_rng(2), 100, 1), q)
    exact = -math.log(1 - q)
    error = math.sqrt(q * (1 - q) / 4000) / (1 - q)
    assert quantile(values, q) == pytest.approx(float(np.median(found)), rel=0.02)
    assert error == pytest.approx(float(found.std()), rel=0.35)
    assert abs(float(np.median(found)) - exact) < 4 * error


def test_an_endless_wait_is_a_value_like_any_other() -> None:
    values = np.where(np.arange(1000) % 50 == 0, math.inf, 1.0)
    found = quantiles(values, np.arange(1000) // 10, draw(np.random.default_rng(2), 100, 1), 0.99)
    assert np.isinf(found).mean() > 0.95


def test_what_a_draw_could_not_tell_counts_against_both_sides() -> None:
    replicas = np.where(np.arange(600) % 4 == 0, math.nan, 1.0)
    assert (-math.inf, math.inf) == interval(replicas, 20.0, 20.0)


def test_the_difference_of_shares_matches_published_values() -> None:
    """56 of 70 against 48 of 80 at 95 % two-sided: 0.0524 to 0.3339 (Newcombe 1998, table II, method 10)."""
    found = share_difference((56 / 70, 48 / 80), (70, 80), 1.96)
    assert (0.0524, 0.3339) == tuple(round(side, 4) for side in found)


def test_two_clean_sheets_still_leave_a_doubt() -> None:
    low, high = share_difference((1.0, 1.0), (300, 300), 1.645)
    assert -0.01 < low < 0 < high < 0.01


def test_what_both_had_in_common_drops_out() -> None:
    apart = share_difference((0.9, 0.95), (200, 200), 1.645)
    together = share_difference((0.9, 0.95), (200, 200), 1.645, correlation=0.8)
    assert together[1] - together[0] < 0.6 * (apart[1] - apart[0])
