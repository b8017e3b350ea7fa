"""Control arms: what is cut, where arms are kept, and what a run that has some says of its loop."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from chaos.controls import new_arm, overrides_for, stored_arms
from chaos.report.summary import block
from chaos.tipping.evidence import view_of
from chaos.tipping.model import play
from chaos.tipping.system import System, Trigger
from chaos.verdict.arms import Arm, diagnosis_of, in_words
from chaos.verdict.course import course_of
from chaos.verdict.metastable import Diagnosis, diagnose
from chaos.writeup import judged, write_up
from tests.verdict.story import Behaviour, Story, experiment

STORM = System(60.0, 100.0, 1.0, attempts=4)
ROBUST = System(60.0, 100.0, 1.0)


def became(system: System) -> Diagnosis:
    course = course_of(view_of(play(system, Trigger("capacity", 8.0, 0.2), 1, before_s=20.0, after_s=40.0)))
    assert not isinstance(course, str)
    return diagnose(course)


@pytest.fixture(scope="module")
def stuck() -> Diagnosis:
    return became(STORM)


@pytest.fixture(scope="module")
def recovered() -> Diagnosis:
    return became(ROBUST)


def test_a_loop_without_which_it_recovers_is_the_loop(stuck: Diagnosis, recovered: Diagnosis) -> None:
    told = in_words(stuck, Arm("retries", "run-2", recovered))
    assert told.startswith("control arm: with retries cut it recovers in ")
    assert told.endswith("s, else it stays down: the loop is retries")


def test_a_loop_without_which_it_stays_down_is_not(stuck: Diagnosis) -> None:
    told = in_words(stuck, Arm("retries", "run-2", stuck))
    assert "control arm: with retries cut it stays down, else it stays down: the loop is another" == told


def test_a_run_that_recovers_has_no_loop_to_name(recovered: Diagnosis) -> None:
    assert in_words(recovered, Arm("retries", "run-2", recovered)).endswith("there is no loop to name")


def test_an_arm_that_cannot_be_judged_says_so(stuck: Diagnosis) -> None:
    told = in_words(stuck, Arm("retries", "run-2", "the run has no baseline or no revert to count from"))
    assert told.startswith("control arm: with retries cut nothing can be said: the run has no baseline")


def test_retries_are_cut_for_every_load_and_anything_else_is_a_key_of_the_file() -> None:
    assert ("load.chat.client.retries=0",) == overrides_for("retries", experiment())
    assert ("faults.0.for=2s",) == overrides_for("faults.0.for=2s", experiment())


def run_directory(path: Path, scar_s: float) -> Path:
    Story(hurt=Behaviour(fail_every=1), scar_s=scar_s).write(path)
    (path / "plan.json").write_text(json.dumps({"experiment": "retrieval/vector_store_outage"}))
    return path


def test_a_run_is_judged_with_the_arms_in_its_directory_and_its_verdict_stays(tmp_path: Path) -> None:
    run = run_directory(tmp_path / "run", 100.0)
    _, _, alone = judged(run)
    arm = run_directory(new_arm(run, "retries") / "retrieval" / "run-2", 2.0)
    assert [("retries", arm)] == list(stored_arms(run))
    verdict = write_up(run)
    assert alone.verdict == verdict.verdict
    assert (*alone.notes, verdict.notes[-1]) == verdict.notes
    assert "control arm: with retries cut it recovers in 2s" in verdict.notes[-1]
    document = json.loads((run / "verdict.json").read_text())
    assert [{"cut": "retries", "run": "run-2", "state": "recovered", "took_s": 2.0}] == document["control_arms"]
    assert "with retries cut it recovers" in (run / "report.md").read_text()
    assert f"  {verdict.notes[-1]}" in block(verdict).splitlines()


def test_an_arm_that_broke_off_before_it_had_a_plan_leaves_the_run_its_verdict(tmp_path: Path) -> None:
    run = run_directory(tmp_path / "run", 2.0)
    broken = new_arm(run, "retries") / "retrieval" / "run-2"
    broken.mkdir(parents=True)
    (broken / "journal.jsonl").write_text("")
    _, _, verdict = judged(run)
    assert "nothing can be said" in verdict.notes[-1]


def test_a_run_without_a_revert_has_no_diagnosis() -> None:
    story = Story(left_out=frozenset({"fault_reverted", "fault_gone"}))
    assert "the run has no baseline or no revert to count from" == diagnosis_of(experiment(), story.evidence())
