"""Recovered, slow, stuck or not to be told, from the evidence of runs whose truth is known by construction."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from chaos.journal.evidence import Evidence
from chaos.journal.tables import ReadingTable
from chaos.tipping.evidence import view_of
from chaos.tipping.model import play
from chaos.tipping.system import Breaker, Budget, Cache, Crowding, System, Trigger
from chaos.units import Rate
from chaos.verdict.judge import decide
from chaos.verdict.measures.metastability import Metastability
from chaos.verdict.outcome import Estimate
from chaos.verdict.trends import drift
from chaos.verdict.view import Bound, View
from chaos.verdict.wording import say_found
from tests.verdict.story import Behaviour, Story

CUT = Trigger("capacity", 10.0, 0.2)
FLUSH = Trigger("flush", 0.0)


def seen(system: System, trigger: Trigger = CUT, after_s: float = 100.0, before_s: float = 30.0) -> View:
    return view_of(play(system, trigger, 3, before_s=before_s, after_s=after_s))


def told(view: View, capacity: float | None = None) -> Estimate:
    return Metastability(capacity=None if capacity is None else Rate(capacity)).estimate(view)


def blind(view: View) -> View:
    """The same run where nobody read any gauge."""
    return replace(view, evidence=replace(view.evidence, readings=ReadingTable.build(())))


@pytest.mark.parametrize(
    ("system", "trigger", "loop"),
    [
        (System(60, 100, 1.0, attempts=4), CUT, "retries"),
        (System(60, 100, 1.0, attempts=4, queue=300), CUT, "retries"),
        (System(95, 100, 1.0, attempts=4, budget=Budget(0.2)), CUT, "retries"),
        (System(70, 100, 1.0, crowding=Crowding(200, 0.5)), CUT, "queue"),
        (System(200, 100, 1.0, cache=Cache(0.7, keys=4000)), FLUSH, "cache"),
    ],
    ids=["resends", "resends, full line", "budget too large", "crowded line", "cold cache"],
)
def test_a_stack_that_stays_down_is_stuck_and_its_loop_is_named(system: System, trigger: Trigger, loop: str) -> None:
    found = told(seen(system, trigger))
    assert (1.0, (1.0, 1.0)) == (found.value, found.interval)
    assert found.detail.startswith("STUCK")
    assert f"looks like {loop}:" in found.detail
    assert "refuted" == decide(found, Bound(at_most=0.0))


def test_a_breaker_that_never_finds_its_dependency_well_enough_is_named() -> None:
    breaker = Breaker(calls=100, open_s=2.0, probes=400, slow_s=0.033)
    found = told(seen(System(40, 100, 1.0, breaker=breaker), CUT, after_s=240.0))
    assert (1.0, True) == (found.value, "looks like breaker:" in found.detail)


@pytest.mark.parametrize(
    "system",
    [
        System(60, 100, 1.0, attempts=4, queue=90),
        System(60, 100, 1.0, attempts=4, cancels=True),
        System(60, 100, 1.0, attempts=4, budget=Budget(0.1)),
        System(60, 100, 1.0, attempts=1),
        System(60, 100, 1.0, attempts=4, breaker=Breaker()),
    ],
    ids=["short line", "cancelled work", "budget", "no resends", "breaker"],
)
def test_each_cure_of_a_storm_lets_it_recover(system: System) -> None:
    found = told(seen(system))
    assert (0.0, (0.0, 0.0), True) == (found.value, found.interval, found.detail.startswith("RECOVERED"))
    assert "upheld" == decide(found, Bound(at_most=0.0))


def test_a_long_line_that_shrinks_is_slow_and_says_how_long_it_still_needs() -> None:
    """Everybody is still late; true need: some 1,500 in line less 100, at 20 a second."""
    found = told(seen(System(80, 100, 1.0), Trigger("capacity", 20.0, 0.0), after_s=40.0))
    assert (0.0, True) == (found.value, found.detail.startswith("SLOW: 0% of the goodput before"))
    more_s = float(found.detail.partition("about ")[2].partition("s more")[0])
    assert 25 < more_s < 80


def test_what_was_not_watched_for_long_enough_cannot_be_told() -> None:
    found = told(seen(System(60, 100, 1.0, attempts=4), after_s=8.0))
    assert (None, (0.0, 1.0)) == (found.value, found.interval)
    assert "at least 20s after the trigger" == found.to_settle
    assert "inconclusive" == decide(found, Bound(at_most=0.0))
    assert "0 to 1" == say_found(found.value, found.interval or (0.0, 0.0), "count")


def test_a_long_line_that_nobody_read_cannot_be_told_from_a_stuck_stack_unless_capacity_is_known() -> None:
    stuck = blind(seen(System(60, 100, 1.0, attempts=4)))
    assert (None, True) == (told(stuck).value, "capacity" in (told(stuck).to_settle or ""))
    assert 1.0 == told(stuck, 100.0).value


def test_a_load_that_is_not_what_it_was_proves_nothing() -> None:
    view = seen(System(60, 100, 1.0, attempts=4))
    samples = view.evidence.samples
    kept = (samples.intended_s < 40.0) | (samples.request % 3 == 0)
    found = told(replace(view, evidence=replace(view.evidence, samples=samples.where(kept))))
    assert (None, True) == (found.value, "times the baseline's" in found.detail)


def test_a_load_that_was_raised_counts_as_trigger_until_it_is_back() -> None:
    """The surge is not a fault: the run reverted something before it ended."""
    view = seen(System(50, 100, 1.0, even=True), Trigger("load", 12.0, 3.0))
    early = replace(view.times, faults={"trigger": (30.0, 31.0)})
    found = told(replace(view, times=early))
    assert "RECOVERED" in found.detail
    recovered_s = float(found.detail.partition("RECOVERED ")[2].partition("s")[0])
    assert 4 <= recovered_s <= 10


def test_an_unsteady_baseline_or_none_proves_nothing() -> None:
    assert "no baseline" in (told(View(Evidence.build(), view_of_story().times)).missing or "")
    restless = told(seen(System(130, 100, 1.0)))
    assert (None, True) == (restless.value, "no steady state" in restless.detail)


def view_of_story() -> View:
    from chaos.verdict.windows import RunTimes

    return View(Story(hurt=Behaviour()).evidence(), RunTimes({}, None, None, {}, {}))


def test_a_walk_is_not_taken_for_a_trend() -> None:
    """Random walks without drift: a trend is claimed in at most a few of a hundred."""
    dice = np.random.default_rng(5)
    found = [drift(np.cumsum(dice.normal(size=60)), walks=True) for _ in range(200)]
    assert sum(f is not None and (f.rises or f.falls) for f in found) <= 8


def test_a_level_with_noise_is_known_to_be_flat_and_a_slope_to_be_one() -> None:
    dice = np.random.default_rng(6)
    flat, slope = (drift(dice.normal(size=80) + pace * np.arange(80), walks=True) for pace in (0.0, 0.1))
    assert flat is not None
    assert slope is not None
    assert flat.low < 0 < flat.high < 0.05
    assert slope.rises
    assert pytest.approx(0.1, abs=0.03) == slope.value


def test_a_series_with_holes_has_no_trend() -> None:
    assert drift(np.array([1.0, math.nan, math.nan, 2.0, 3.0, math.nan]), walks=False) is None
