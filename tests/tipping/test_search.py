"""The search finds what the closed form says, within its budget of runs; and small slices of the long matrices."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "soak"), str(HERE.parent / "system")]

from drill import Drill
from matrix import Trial
from tipping import bounded, judged, tipped

from chaos.tipping.search import MOST_RUNS, by_control_arm, tipping_length, tipping_load
from chaos.tipping.system import Budget, System, Trigger

CUT = Trigger("capacity", 3.0, 0.2)


@pytest.mark.parametrize("point", ["load 0.7, 40% left, k 4", "load 0.3, 10% left, k 4"])
def test_the_shortest_trigger_is_that_of_the_closed_form(point: str, tmp_path: Path) -> None:
    found = tipped(Trial(point, 1), Drill(tmp_path))
    assert (None, True) == (found.wrong, found.facts["runs"] <= MOST_RUNS)


def test_the_boundary_is_that_of_the_closed_form(tmp_path: Path) -> None:
    assert bounded(Trial("k 2, budget none", 1), Drill(tmp_path)).wrong is None


@pytest.mark.parametrize("trial", ["stuck/0", "stuck/2", "safe/1", "safe/2", "slow/0"])
def test_the_judge_tells_stuck_from_safe_and_names_the_loop(trial: str, tmp_path: Path) -> None:
    kind, _, number = trial.partition("/")
    facts = judged(Trial(trial, int(number)), Drill(tmp_path)).facts
    wanted = {"stuck": ("stuck", facts["loop"]), "safe": ("recovered", None)}
    if kind == "slow":
        assert "stuck" != facts["state"]
    else:
        assert wanted[kind] == (facts["state"], facts["named"])
    assert kind != "stuck" or facts["loop"] == facts["proved"]


def test_nothing_tips_a_stack_whose_line_is_short_enough() -> None:
    found = tipping_length(System(60.0, 100.0, 1.0, attempts=4, queue=90, even=True), CUT, 1)
    assert (None, math.inf, math.inf) == (found.point, found.tips, found.predicted)


def test_a_surge_tips_as_the_closed_form_says() -> None:
    found = tipping_length(System(70.0, 100.0, 1.0, attempts=4, even=True), Trigger("load", 4.0, 3.0), 1)
    assert found.point is not None
    assert pytest.approx(found.predicted, rel=0.05) == found.point


def test_the_load_that_tips_is_found_too() -> None:
    """For a trigger that is as long as can be the point is rho*; a shorter one needs more load."""
    found = tipping_load(System(40.0, 50.0, 1.0, attempts=2, even=True), Trigger("capacity", 20.0, 0.0), 1)
    assert found.point is not None
    assert pytest.approx(25.0, rel=0.06) == found.point
    assert 25.0 == found.predicted


def test_a_storm_is_cured_by_cutting_resends_or_by_ending_work_of_nobody() -> None:
    arms = by_control_arm(System(60.0, 100.0, 1.0, attempts=4, budget=Budget(1.0)), CUT, 1, before_s=15.0, after_s=60.0)
    assert [("retries", "recovered"), ("queue", "recovered")] == [(arm.loop, arm.found.state) for arm in arms]
