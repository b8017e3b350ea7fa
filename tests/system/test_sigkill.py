"""SIGKILL of the harness in the middle of each fault: all is reverted within two seconds without anyone's help."""

from __future__ import annotations

import random
import time

import pytest
from by_undo import FIRST
from drill import Drill, kill, until_whole


@pytest.mark.parametrize("name", FIRST)
def test_the_watchdog_reverts_within_two_seconds_and_the_evidence_stays(drill: Drill, name: str) -> None:
    took, broken = killed(drill, name, delay_s=random.Random(name).uniform(0, 1))
    assert ([], True) == (broken, took <= 2.0), f"{took:.2f}s"
    judged = drill.call("judge", str(drill.last_run()))
    assert (2, True) == (judged.returncode, "interrupted" in judged.stdout), judged.stdout


def test_a_new_run_starts_at_once_after_a_kill(drill: Drill) -> None:
    began = time.time()
    process = drill.begin_run("net_latency")
    drill.wait_for("fault_injected", process, began)
    kill(process)
    done = drill.run("noop")
    assert 0 == done.returncode, done.stderr


def killed(drill: Drill, name: str, delay_s: float) -> tuple[float, list[str]]:
    """Kill a run `delay_s` after its inject; seconds until the stack is whole, and what is still broken."""
    began = time.time()
    process = drill.begin_run(name, "--seed", str(int(delay_s * 1000)))
    drill.wait_for("fault_injected", process, began)
    time.sleep(delay_s)
    kill(process)
    return until_whole(drill, 10)
