"""The schedule of a load."""

from __future__ import annotations

import math
import random
import statistics
from itertools import pairwise

from chaos.load.arrivals import arrivals
from chaos.spec.model import Load
from chaos.units import Rate


def load(kind="poisson", rate=50.0):
    return Load(name="chat", route="chat", rate=Rate(rate), arrivals=kind)


def test_constant_arrivals_are_evenly_spaced_without_accumulating_error():
    times = arrivals(load("constant", 3.0), random.Random(1), 1000.0)
    assert len(times) == 3000
    assert times[0] == 0.0
    assert times[2999] == 2999 / 3.0


def test_poisson_gaps_have_the_mean_and_spread_of_an_exponential():
    times = arrivals(load(rate=50.0), random.Random(7), 400.0)
    gaps = [b - a for a, b in pairwise(times)]
    assert math.isclose(statistics.mean(gaps), 0.02, rel_tol=0.03)
    assert math.isclose(statistics.stdev(gaps), 0.02, rel_tol=0.05)


def test_poisson_counts_vary_from_seed_to_seed_as_a_poisson_count_does():
    counts = [len(arrivals(load(rate=20.0), random.Random(seed), 5.0)) for seed in range(400)]
    assert math.isclose(statistics.mean(counts), 100, rel_tol=0.03)
    assert math.isclose(statistics.variance(counts), 100, rel_tol=0.25)


def test_the_same_dice_give_the_same_schedule():
    assert arrivals(load(), random.Random(3), 10.0) == arrivals(load(), random.Random(3), 10.0)


def test_all_arrivals_lie_inside_the_duration_and_ascend():
    times = arrivals(load(), random.Random(5), 10.0)
    assert all(0 <= t < 10.0 for t in times)
    assert list(times) == sorted(times)


def test_nothing_is_sent_in_no_time_or_at_no_rate():
    assert arrivals(load(), random.Random(5), 0.0) == ()
    assert arrivals(load("constant", 0.0), random.Random(5), 10.0) == ()
