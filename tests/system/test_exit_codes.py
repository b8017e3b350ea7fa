"""Each exit code of the contract, proved through the command line on a real stack."""

from __future__ import annotations

import json
import resource
import signal
import time
from pathlib import Path

import pytest
from drill import SHORT, Drill, harm
from harm import process_state

FILES = [
    "experiment.yaml",
    "plan.json",
    "inventory.json",
    "environment.json",
    "journal.jsonl",
    "samples.arrows",
    "readings.arrows",
]
REPORTS = ["verdict.json", "timeline.svg", "report.md", "report.html", "junit.xml"]


def test_0_upheld_and_the_run_directory_is_whole(drill: Drill) -> None:
    done = drill.run("noop", "--json")
    verdict = json.loads(done.stdout)
    assert (0, "upheld", 0) == (done.returncode, verdict["verdict"], verdict["exit_code"]), done.stderr
    assert [] == [name for name in (*FILES, *REPORTS) if not (drill.last_run() / name).stat().st_size]


def test_what_lets_us_into_the_admin_apis_is_nowhere_in_the_evidence(drill: Drill) -> None:
    """Only where it lies is: a fault on an edge and one on a GPU were let in by it."""
    token = (drill.state / "stacks" / "bundled" / "admin.token").read_bytes().strip()
    for name in ("net_latency", "gpu_throttle"):
        began = time.time()
        process = drill.begin_run(name)
        drill.wait_for("fault_confirmed", process, began)
        leases = [path.read_bytes() for path in (drill.state / "leases").iterdir()]
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        written = [*leases, *(path.read_bytes() for path in drill.last_run().rglob("*") if path.is_file())]
        assert leases
        assert not any(token in each for each in written)
        assert any(b"admin.token" in each for each in leases)


def test_1_refuted_names_the_hypothesis(drill: Drill) -> None:
    done = drill.run("refuted")
    assert 1 == done.returncode, done.stderr
    assert "refuted       everybody gets a lesser answer" in done.stdout


def test_2_inconclusive_when_a_series_is_missing(drill: Drill) -> None:
    done = drill.run("inconclusive", "--json")
    by_name = {h["name"]: h for h in json.loads(done.stdout)["hypotheses"]}
    assert 2 == done.returncode, done.stderr
    assert "inconclusive" == by_name["a series that nobody serves"]["verdict"]
    assert by_name["a series that nobody serves"]["to_settle"]


@pytest.mark.parametrize(("name", "times"), [("SIGINT", 1), ("SIGINT", 2), ("SIGTERM", 1)])
def test_3_stopped_by_a_signal_with_everything_reverted_and_reported(drill: Drill, name: str, times: int) -> None:
    began = time.time()
    process = drill.begin_run("process_stall")
    drill.wait_for("fault_confirmed", process, began)
    for _ in range(times):
        process.send_signal(getattr(signal, name))
        time.sleep(0.05)
    out, err = process.communicate(timeout=30)
    assert 3 == process.returncode, err
    assert ([], True) == (harm(drill), (drill.last_run() / "report.md").exists())
    assert [name] == [line["by"] for line in drill.journal() if line["kind"] == "stop_requested"]
    assert "stopped" in out


def test_3_stopped_by_a_guard(drill: Drill) -> None:
    done = drill.run("guarded")
    kinds = [line["kind"] for line in drill.journal()]
    assert (3, True, []) == (done.returncode, "guard_tripped" in kinds, harm(drill)), done.stderr


def test_3_stopped_from_another_terminal(drill: Drill) -> None:
    began = time.time()
    process = drill.begin_run("net_down")
    drill.wait_for("fault_confirmed", process, began)
    assert 0 == drill.call("stop").returncode
    process.communicate(timeout=10)
    assert (3, []) == (process.returncode, harm(drill))


def test_4_what_cannot_be_reverted_is_said_and_nothing_new_is_injected(drill: Drill) -> None:
    lease = drill.state / "leases" / "left-by-a-dead-run.json"
    lease.parent.mkdir(exist_ok=True)
    lease.write_text("{ torn")
    try:
        recovered = drill.call("recover")
        assert (4, True) == (recovered.returncode, "left-by-a-dead-run" in recovered.stdout)
        run = drill.run("noop")
        assert 4 == run.returncode, run.stderr
    finally:
        lease.unlink()
    assert 0 == drill.call("recover").returncode


def test_64_bad_file_with_its_place(drill: Drill, tmp_path: Path) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text((SHORT / "noop.yaml").read_text().replace("kind: noop", "kind: nop"))
    for command in ("check", "plan", "run"):
        done = drill.call(command, str(bad))
        assert (64, True) == (done.returncode, "error[unknown-fault]" in done.stderr), done.stderr
        assert "bad.yaml:10:" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "no/such/file.yaml"],
        ["check", "no/such/file.yaml"],
        ["judge", "."],
        ["report", "."],
        ["explain", "no-such-code"],
        ["faults", "no_such_fault"],
        ["run", str(SHORT / "noop.yaml"), "--weakness", "no_such_weakness"],
        ["run"],
        ["no-such-command"],
    ],
)
def test_64_wrong_arguments_never_give_a_traceback(drill: Drill, arguments: list[str]) -> None:
    done = drill.call(*arguments)
    assert (64, False) == (done.returncode, "Traceback" in done.stderr), done.stderr
    assert done.stderr.strip()


def test_64_a_second_run_on_the_same_stack(drill: Drill) -> None:
    began = time.time()
    first = drill.begin_run("noop_long")
    drill.wait_for("load_started", first, began)
    second = drill.run("noop")
    first.send_signal(signal.SIGINT)
    first.communicate(timeout=20)
    assert (64, True) == (second.returncode, "in use by run" in second.stderr), second.stderr
    assert 3 == first.returncode


def test_64_planning_without_a_stack(tmp_path: Path) -> None:
    done = Drill(tmp_path).call("plan", str(SHORT / "noop.yaml"))
    assert (64, True) == (done.returncode, "brownout up" in done.stderr)


def test_64_an_empty_and_a_too_wide_selection(drill: Drill) -> None:
    for change, code in (("faults.0.target.name=nobody", "no-target"), ("faults.0.target.count=2", "blast-radius")):
        done = drill.call("plan", str(SHORT / "process_stall.yaml"), "--set", change)
        assert (64, True) == (done.returncode, code in done.stderr), done.stderr


def test_64_a_target_that_is_dead_before_the_run(drill: Drill) -> None:
    (engine,) = (t for t in drill.inventory()["targets"] if t["name"] == "engine-a")
    with drill_hold(engine):
        time.sleep(0.2)
        done = drill.run("process_stall", "--set", "faults.0.target.name=engine-a")
    assert (64, True) == (done.returncode, "error[dead-target]" in done.stderr), done.stderr


def drill_hold(target: dict) -> object:
    """Kill a target and hold it down for the length of a block, past the harness's back."""
    import contextlib
    import os

    import httpx

    @contextlib.contextmanager
    def holding():
        transport = httpx.HTTPTransport(uds=target["handles"]["supervisor"])
        with httpx.Client(transport=transport, base_url="http://supervisor") as supervisor:
            supervisor.post(f"/targets/{target['name']}/hold", json={"by": "test"}).raise_for_status()
            os.kill(target["pids"][0], signal.SIGKILL)
            yield
            supervisor.post(f"/targets/{target['name']}/release", json={"by": "test"}).raise_for_status()

    return holding()


def test_70_a_full_disk_for_the_journal_reverts_and_says_so(drill: Drill) -> None:
    """A limit on file size stands in for a full disk: every write beyond it fails the same way."""

    def tiny_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (6000, 6000))

    done = drill.run("process_stall", preexec_fn=tiny_files)
    assert (70, []) == (done.returncode, harm(drill)), done.stderr
    assert ("Traceback" in done.stderr, done.stderr.count("error:")) == (False, 1)


def test_plan_touches_nothing_and_prints_the_same_bytes(drill: Drill) -> None:
    before = drill.inventory()
    one, two = (drill.call("plan", str(SHORT / "node_loss.yaml"), "--seed", "5") for _ in range(2))
    assert (0, one.stdout, before) == (one.returncode, two.stdout, drill.inventory())
    assert process_state(before["targets"][0]["pids"][0]) in {"S", "R"}
