"""Processes are read from /proc and never mistaken for one another."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.adapters.processes import ProcFs, parse_stat
from chaos.ports import ProcessId


def _stat(pid: int, name: str, state: str, parent: int, ticks: int) -> str:
    return f"{pid} ({name}) {state} {parent} " + " ".join(["0"] * 17) + f" {ticks} 0 0\n"


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    for pid, name, state, parent in ((10, "api", "S", 1), (11, "core) R 1", "T", 10), (12, "dead", "Z", 10)):
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "stat").write_text(_stat(pid, name, state, parent, pid * 100))
    return tmp_path


def test_a_process_is_its_number_and_its_start_time(proc: Path) -> None:
    assert ProcFs(proc).identify(10) == ProcessId(10, 1000)


def test_a_name_with_brackets_and_spaces_is_not_taken_for_fields() -> None:
    assert parse_stat(_stat(11, "a) Z 9 (b", "T", 10, 5)) == ("T", 10, 5)


def test_a_namesake_with_another_start_time_is_somebody_else(proc: Path) -> None:
    assert ProcFs(proc).state(ProcessId(10, 1000)) == "S"
    assert ProcFs(proc).state(ProcessId(10, 999)) is None


def test_a_zombie_counts_as_gone(proc: Path) -> None:
    assert ProcFs(proc).identify(12) is None
    assert ProcFs(proc).state(ProcessId(12, 1200)) is None


def test_no_process_is_none(proc: Path) -> None:
    assert ProcFs(proc).identify(99) is None
    assert ProcFs(proc).children(ProcessId(99, 1)) == ()


def test_children_are_the_live_ones_also_without_the_kernels_own_list(proc: Path) -> None:
    assert ProcFs(proc).children(ProcessId(10, 1000)) == (ProcessId(11, 1100),)


@pytest.fixture
def family() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sh", "-c", "sleep 600 & wait"], start_new_session=True) as process:
        yield process
        os.killpg(process.pid, signal.SIGKILL)


def _until(holds, within_s: float = 5.0) -> None:
    give_up = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < give_up
        time.sleep(0.002)


@pytest.mark.system
def test_a_signal_reaches_exactly_the_process_it_is_meant_for(family) -> None:
    proc = ProcFs()
    parent = proc.identify(family.pid)
    _until(lambda: proc.children(parent))
    (child,) = proc.children(parent)
    assert proc.signal(child, signal.SIGSTOP)
    _until(lambda: proc.state(child) == "T")
    assert proc.state(parent) in ("S", "R")
    assert not proc.signal(ProcessId(child.pid, child.start_ticks + 1), signal.SIGKILL)
    assert proc.state(child) == "T"
    assert proc.signal(child, signal.SIGCONT)
    _until(lambda: proc.state(child) in ("S", "R"))


@pytest.mark.system
def test_a_signal_to_a_process_that_is_gone_tells_so() -> None:
    with subprocess.Popen(["sleep", "600"]) as process:
        identity = ProcFs().identify(process.pid)
        process.kill()
    assert not ProcFs().signal(identity, signal.SIGCONT)
