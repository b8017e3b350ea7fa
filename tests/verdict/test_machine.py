"""The machine in one sentence."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from chaos.verdict.judge import judge
from chaos.verdict.machine import machine
from tests.verdict.story import Story, experiment

NOISE = {
    "timer_late_s": {"p50": 0.0002, "p99": 0.0141, "max": 0.2},
    "steal_share": {"p50": 0.0, "p99": 0.1, "max": 0.12},
    "load_average": {"p50": 1.93, "p99": 2.5, "max": 2.6},
}


def told(**environment: Any) -> str | None:
    return machine(replace(Story().evidence(), environment=environment))


def test_the_machine_is_told_in_one_sentence() -> None:
    whole = "timers 200us late p50, 14.1ms p99; 0% steal, 12% in the worst second; load 1.9 of 2 cores"
    assert told(noise=NOISE, cores=2) == whole


def test_what_was_not_measured_is_left_out() -> None:
    assert (
        told(noise=NOISE | {"steal_share": None}, cores=2) == "timers 200us late p50, 14.1ms p99; load 1.9 of 2 cores"
    )


@pytest.mark.parametrize("environment", [{}, {"noise": None}, {"noise": {}}, {"noise": {"timer_late_s": [1]}}])
def test_a_run_that_nobody_listened_to_says_nothing(environment: dict[str, Any]) -> None:
    assert told(**environment) is None


def test_a_load_that_was_late_says_what_the_machine_was_like() -> None:
    noisy = replace(Story(lateness_s=0.6).evidence(), environment={"noise": NOISE, "cores": 2})
    (late,) = (each for each in judge(experiment(), noisy).preconditions if each.name == "load delivered")
    assert late.why.endswith("wanted a p99 of at most 500ms (the machine: " + str(told(noise=NOISE, cores=2)) + ")")
