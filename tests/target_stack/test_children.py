"""Forking from the nursery, and looking at process groups."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from target_stack.children import clear, members, signal_group, sweep, working_in

pytestmark = pytest.mark.system

TWO_SLEEPERS = "import os, time; pid = os.fork(); print(os.getpid(), flush=True) if pid else None; time.sleep(60)"

NURSERY = """
import asyncio, json, os, sys
from target_stack.children import Children
from target_stack.nursery import open_nursery

async def main():
    ended, children = [], Children()
    await children.connect(line, lambda pid, status: ended.append(status))
    log = sys.argv[1] + "/log"
    quick = await children.start({"name": "quick", "argv": ["/bin/sh", "-c", "echo $PPID; exit 7"], "log": log})
    status = await children.end_of(quick)
    slow = await children.start({"name": "slow", "argv": ["/bin/sleep", "60"], "log": log})
    print(json.dumps({"nursery": nursery, "status": status, "ended": ended, "slow": slow}), flush=True)
    if len(sys.argv) > 2:
        await asyncio.sleep(60)

nursery, line = open_nursery()
asyncio.run(main())
"""


@contextlib.contextmanager
def supervisor(folder, *arguments):
    """A process with a nursery, and what it told."""
    command = [sys.executable, "-c", NURSERY, str(folder), *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as process:
        try:
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()


def gone(pid, timeout_s=5.0):
    """Whether a process ends in time; one that only waits to be reaped has ended."""
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        try:
            if "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text():
                return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


def test_a_job_is_a_child_of_the_nursery_and_its_status_is_told(tmp_path):
    with supervisor(tmp_path) as (_, told):
        assert told["status"] == 7
        assert told["ended"] == [7]
        assert (tmp_path / "log").read_text() == f"{told['nursery']}\n"


def test_a_job_leads_a_process_group_of_its_own(tmp_path):
    with supervisor(tmp_path, "stay") as (_, told):
        assert os.getpgid(told["slow"]) == told["slow"]


def test_when_the_supervisor_is_killed_the_nursery_and_its_jobs_die(tmp_path):
    with supervisor(tmp_path, "stay") as (process, told):
        process.kill()
        assert gone(told["slow"])
        assert gone(told["nursery"])


def test_a_sweep_ends_all_of_a_group_also_the_frozen():
    command = [sys.executable, "-c", TWO_SLEEPERS]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as leader:
        leader.stdout.readline()
        found = members(leader.pid)
        signal_group(leader.pid, signal.SIGSTOP)
        asyncio.run(sweep(leader.pid))
        assert len(found) == 2
        assert found[0] == leader.pid
        assert members(leader.pid) == ()
        signal_group(leader.pid, signal.SIGTERM)


def test_who_left_the_group_is_found_where_it_works(tmp_path):
    command = [sys.executable, "-c", "import signal; print(flush=True); signal.pause()"]
    with subprocess.Popen(command, cwd=tmp_path, start_new_session=True, stdout=subprocess.PIPE) as worker:
        worker.stdout.readline()
        assert working_in(tmp_path) == (worker.pid,)
        asyncio.run(clear(tmp_path))
        assert worker.wait(2) == -signal.SIGKILL
        assert working_in(tmp_path) == ()


LEARNING = """
import asyncio, sys
from target_stack.children import Children
from target_stack.nursery import open_nursery

async def main():
    children = Children()
    await children.connect(line, lambda pid, status: None)
    children.teach(["no_such_module", "wave"])
    log = sys.argv[1] + "/log"
    job = {"name": "pupil", "component": "pupil", "config": {}, "log": log}
    await children.end_of(await children.start(job))

from target_stack import nursery as forked
forked.component_main = lambda component: lambda config: print(sorted({"wave", "xdrlib"} & set(sys.modules)))
nursery, line = open_nursery()
asyncio.run(main())
"""


def test_the_nursery_learns_a_module_for_all_parts_that_come_after_it(tmp_path):
    command = [sys.executable, "-c", LEARNING, str(tmp_path)]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[2], timeout=60, capture_output=True, text=True, check=False
    )
    assert (done.returncode, (tmp_path / "log").read_text()) == (0, "['wave']\n"), done.stderr
