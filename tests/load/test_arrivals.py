"""The schedule of a load."""

from __future__ import annotations

import math
import random
import statistics
from itertools import pairwise

from chaos.load.arrivals import arrivals
from chaos.spec.model import Load, Surge
from chaos.units import Duration, Rate


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


def surging(kind: str) -> Load:
    surge = Surge(times=12.0, for_=Duration(10), at=Duration(5))
    return Load(name="batch", route="chat", rate=Rate(2.0), arrivals=kind, surge=surge)


def test_a_surge_counts_from_the_end_of_the_baseline_and_multiplies_the_rate():
    times = arrivals(surging("constant"), random.Random(1), 60.0, baseline_s=20.0)
    counts = [sum(start <= t < end for t in times) for start, end in ((0, 25), (25, 35), (35, 60))]
    assert [50, 240, 50] == counts
    assert list(times) == sorted(times)


def test_a_poisson_surge_has_its_rate_and_leaves_the_rest_alone():
    runs = [arrivals(surging("poisson"), random.Random(seed), 60.0, baseline_s=20.0) for seed in range(100)]
    assert math.isclose(statistics.mean(sum(25 <= t < 35 for t in run) for run in runs), 240, rel_tol=0.03)
    assert math.isclose(statistics.mean(sum(not 25 <= t < 35 for t in run) for run in runs), 100, rel_tol=0.05)
    assert all(list(run) == sorted(run) and run[-1] < 60 for run in runs)


def test_a_surge_at_the_very_end_is_cut_with_the_load():
    assert max(arrivals(surging("constant"), random.Random(1), 27.0, baseline_s=20.0)) < 27.0
