"""Series on a real stack: derived seeds, hunts that stop, and what a death in the middle costs."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from drill import Drill, kill

from chaos.series.order import seed_of


def only_series(drill: Drill, name: str) -> Path:
    """The newest series of an experiment."""
    return max((drill.runs / name).glob("series-*"), key=lambda folder: folder.stat().st_mtime)


def seeds_of_plans(folder: Path) -> set[int]:
    return {json.loads(plan.read_text())["seed"] for plan in folder.glob("*/plan.json")}


def test_a_series_makes_its_runs_with_the_stated_seeds_and_pools_them(drill: Drill) -> None:
    """On a machine too busy to send in time a run is rightly inconclusive; the series says so, and its code too."""
    done = drill.run("noop", "--repeat", "2", "--seed", "11", "--json")
    told: dict[str, Any] = json.loads(done.stdout)
    folder = only_series(drill, "noop")
    assert (told["exit_code"], told) == (done.returncode, json.loads((folder / "series.json").read_text())), done.stderr
    assert [11, seed_of(11, 2)] == [run["seed"] for run in told["runs"]]
    assert {11, seed_of(11, 2)} == seeds_of_plans(folder)
    assert 2 == told["upheld"] + told["inconclusive"]
    assert {"python", "commit"} <= set(json.loads((folder / "environment.json").read_text()))
    assert all((folder / run["dir"] / "report.md").is_file() for run in told["runs"])
    assert done.stderr.count("run 1 of 2") == 1
    assert (folder / "series.md").read_text().startswith(f"# {told['verdict'].upper()}: ")


def test_a_hunt_ends_with_the_first_refuted_run_and_names_its_seed(drill: Drill) -> None:
    done = drill.run("refuted", "--until-refuted", "6", "--keep", "refuted")
    assert 1 == done.returncode, done.stdout + done.stderr
    folder = only_series(drill, "refuted")
    told = json.loads((folder / "series.json").read_text())
    last = told["runs"][-1]
    assert (last["number"], len(told["runs"])) == (told["first_refuted"], last["number"])
    assert f"--seed {last['seed']}\n" in done.stdout
    assert "refuted       everybody gets a lesser answer" in done.stdout
    assert (folder / last["dir"] / "journal.jsonl").is_file()


@pytest.mark.parametrize("end", ["SIGKILL", "SIGINT"])
def test_a_series_that_died_is_resumed_and_makes_only_what_is_lacking(drill: Drill, end: str) -> None:
    began = time.time()
    process = drill.begin_run("noop", "--repeat", "2", "--seed", "12")
    first = wait_for_a_counted_run(drill, process, began)
    if end == "SIGKILL":
        kill(process)
    else:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        assert 3 == process.returncode
    folder = only_series(drill, "noop")
    done = drill.call("run", "--resume", str(folder), "--no-runbook", "--json")
    told = json.loads(done.stdout)
    assert ([12, seed_of(12, 2)], first) == ([run["seed"] for run in told["runs"]], told["runs"][0]["dir"]), done.stderr
    folders = {path.name for path in folder.iterdir() if path.is_dir()}
    assert folders == {*told["cut_short"], *(run["dir"] for run in told["runs"])}
    assert told["exit_code"] == done.returncode


def wait_for_a_counted_run(drill: Drill, process: subprocess.Popen[str], since: float, within_s: float = 60) -> str:
    """The directory of the first run, as soon as the series knows it."""
    give_up = time.monotonic() + within_s
    while time.monotonic() < give_up:
        assert process.poll() is None, process.communicate()
        pages = [page for page in drill.runs.glob("noop/series-*/series.json") if page.stat().st_mtime >= since]
        runs = json.loads(pages[0].read_text())["runs"] if pages else []
        if runs:
            return str(runs[0]["dir"])
        time.sleep(0.02)
    raise AssertionError("no run was counted")
