"""Experiments through pytest on a real stack: verdicts as test results, one stack a session, signals, trouble."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from drill import SHORT, Drill
from harm import ours

FAST = """
def test_python_beside_experiments() -> None:
    pass
"""


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Drill]:
    """A drill without a stack: the session of pytest brings up its own, and nothing of it may be left."""
    drill = Drill(tmp_path)
    yield drill
    assert left(drill) == ([], [], [])


def left(drill: Drill) -> tuple[list[str], list[str], list[str]]:
    """Processes, leases and folders of stacks that are still there."""
    stacks = drill.state / "stacks"
    return ours(str(drill.state)), drill.leases(), [p.name for p in stacks.glob("*")] if stacks.is_dir() else []


def begin(drill: Drill, names: list[str], *arguments: str, **environment: str) -> subprocess.Popen[str]:
    """Start pytest on copies of short experiments; every warning is an error."""
    folder = drill.folder / "experiments"
    folder.mkdir(exist_ok=True)
    for name in names:
        shutil.copy(SHORT / f"{name}.yaml", folder)
    (folder / "test_python.py").write_text(FAST)
    (drill.folder / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\nfilterwarnings = error\n")
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "pytest",
            "-pno:hypothesispytest",
            "experiments",
            "-v",
            "--junitxml=junit.xml",
            *arguments,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=drill.folder,
        env={**drill.environment(), **environment},
        start_new_session=True,
    )


def end(process: subprocess.Popen[str], within_s: float = 90) -> str:
    """What it said; never a traceback, whatever happened."""
    try:
        said, _ = process.communicate(timeout=within_s)
    except subprocess.TimeoutExpired:
        process.kill()
        said, _ = process.communicate()
        raise AssertionError(f"pytest did not end in {within_s}s:\n{said}") from None
    assert "Traceback" not in said, said
    return said


def cases(drill: Drill) -> dict[str, ET.Element]:
    """The test cases of pytest's own JUnit XML by name."""
    text = (drill.folder / "junit.xml").read_text()
    tree = ET.fromstring(text)  # noqa: S314  the session that this test started wrote it
    return {case.attrib["name"]: case for case in tree.iter("testcase")}


def properties(case: ET.Element) -> dict[str, str]:
    return {found.attrib["name"]: found.attrib["value"] for found in case.iter("property")}


def wait_until(condition: Any, process: subprocess.Popen[str], within_s: float = 40) -> None:
    """Wait for something that the session does."""
    give_up = time.monotonic() + within_s
    while not condition():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < give_up, "it did not happen"
        time.sleep(0.02)


def on_a_calm_machine(drill: Drill, names: list[str], *arguments: str) -> str:
    """What a session says. A machine too busy to send in time makes a run inconclusive, rightly; then one more try."""
    for _ in range(2):
        said = end(begin(drill, names, *arguments))
        if "Not met: load delivered" not in said:
            break
        shutil.rmtree(drill.folder / "evidence")
    return said


@pytest.mark.timeout(240)
def test_an_upheld_run_passes_and_a_refuted_one_fails_with_reasons_and_report(own: Drill) -> None:
    """Both on one stack that the session brings up, and both in pytest's own JUnit XML."""
    said = on_a_calm_machine(own, ["noop", "refuted"], "--chaos-seed", "7", "--chaos-out", "evidence")
    assert "1 failed, 2 passed" in said, said
    assert re.search(r"^experiments/noop\.yaml::noop PASSED", said, re.MULTILINE)
    assert re.search(r"^experiments/refuted\.yaml::refuted FAILED", said, re.MULTILINE)
    assert "refuted       everybody gets a lesser answer" in said, said
    (report,) = set(re.findall(r"report: (evidence/refuted/\S+/report\.md)", said))
    assert (own.folder / report).read_text()
    upheld, refuted = cases(own)["noop"], cases(own)["refuted"]
    assert properties(upheld)["brownout_verdict"] == "upheld"
    assert properties(refuted) == {
        "brownout_exit_code": "1",
        "brownout_verdict": "refuted",
        "brownout_report": report,
    }
    assert [report in (failure.text or "") for failure in refuted.iter("failure")] == [True]
    inventories = [run.read_text() for run in own.folder.glob("evidence/*/*/inventory.json")]
    assert (len(inventories), len(set(inventories))) == (2, 1)
    plans = [json.loads(run.read_text()) for run in own.folder.glob("evidence/*/*/plan.json")]
    assert [plan["seed"] for plan in plans] == [7, 7]


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_a_signal_in_the_middle_of_a_fault_reverts_reports_and_ends_the_session(own: Drill, name: str) -> None:
    """The tests behind it are not run, and the stack goes down with the session."""
    began = time.time()
    process = begin(own, ["node_loss", "process_stall"])
    own.wait_for("fault_confirmed", process, began)
    process.send_signal(getattr(signal, name))
    said = end(process, within_s=40)
    assert (process.returncode, f"{name} ended node_loss" in said) == (pytest.ExitCode.INTERRUPTED, True), said
    kinds = [line["kind"] for line in own.journal()]
    assert ("fault_gone" in kinds, (own.last_run() / "report.md").exists()) == (True, True)
    assert [properties(case).get("brownout_exit_code") for case in cases(own).values()] == ["3"]


@pytest.mark.parametrize("later_s", [0.0, 1.0])
def test_ctrl_c_while_the_stack_comes_up_takes_it_down_again(own: Drill, later_s: float) -> None:
    process = begin(own, ["noop"])
    wait_until(lambda: list(own.state.glob("stacks/own-*/supervisor.log")), process)
    time.sleep(later_s)
    process.send_signal(signal.SIGINT)
    said = end(process, within_s=40)
    assert process.returncode == pytest.ExitCode.INTERRUPTED, said
    assert "error: ended before the stack was ready" in said


def test_a_stack_that_cannot_come_up_is_told_in_one_sentence_and_not_tried_again(own: Drill) -> None:
    """Every experiment fails for it, tests in Python still run."""
    process = begin(own, ["noop", "refuted"], "--chaos-weakness", "no_such_weakness")
    said = end(process)
    assert (process.returncode, "2 failed, 1 passed" in said) == (1, True), said
    assert said.count("error: the stack did not come up: ") >= 2
    assert "no_such_weakness" in said


def test_a_stack_that_is_up_is_used_and_stays_up(drill: Drill, tmp_path: Path) -> None:
    """Bringing one up for every session would cost its seconds again and again."""
    beside = Drill(tmp_path, {"BROWNOUT_STATE": str(drill.state)})
    before = drill.inventory()
    end(begin(beside, ["noop"]))
    assert (tmp_path / properties(cases(beside)["noop"])["brownout_report"]).exists()
    assert (drill.inventory(), sorted(p.name for p in (drill.state / "stacks").iterdir())) == (before, ["bundled"])


def test_a_series_is_one_test_with_a_line_for_each_run(drill: Drill, tmp_path: Path) -> None:
    """Whatever the runs come to on a busy machine, none of them can be upheld here."""
    beside = Drill(tmp_path, {"BROWNOUT_STATE": str(drill.state)})
    said = end(begin(beside, ["refuted"], "--chaos-repeat", "2", "--chaos-seed", "5", "--chaos-out", "evidence"))
    facts = properties(cases(beside)["refuted"])
    assert "1 failed, 1 passed" in said, said
    assert ["1", "2"] == lines_of(said), said
    assert 2 == int(facts["brownout_runs_refuted"]) + int(facts["brownout_runs_inconclusive"])
    assert ("0", True) == (facts["brownout_runs_upheld"], (tmp_path / facts["brownout_report"]).is_file())


def lines_of(said: str) -> list[str]:
    """Numbers of the runs in the table that a failure ends with."""
    failure = said.split("series: evidence/")[1]
    return re.findall(r"^run (\d) of 2  ", failure, re.MULTILINE)[:2]
