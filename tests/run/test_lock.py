"""One run at a time per stack, and a dead run keeps nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from chaos.adapters.processes import ProcFs
from chaos.run.lock import StackBusy, hold, live_holder, read_holder

HOLDER = """
import sys, time
from pathlib import Path
from chaos.adapters.processes import ProcFs
from chaos.run.lock import hold
with hold(Path(sys.argv[1]), "other-run", Path("runs/x"), ProcFs()):
    print("held", flush=True)
    time.sleep(60)
"""


def test_the_lock_names_its_holder_while_it_is_held_and_nobody_after(tmp_path: Path) -> None:
    lock = tmp_path / "stack" / "run.lock"
    with hold(lock, "run-1", tmp_path / "run-1", ProcFs()):
        holder = live_holder(lock, ProcFs())
        assert holder is not None
        assert ("run-1", os.getpid()) == (holder.run, holder.pid)
    assert live_holder(lock, ProcFs()) is None


def test_a_run_that_breaks_off_is_not_taken_for_alive_while_its_process_goes_on(tmp_path: Path) -> None:
    lock = tmp_path / "run.lock"
    with pytest.raises(OSError, match="disk"), hold(lock, "run-1", tmp_path, ProcFs()):
        raise OSError("disk")
    assert live_holder(lock, ProcFs()) is None


def test_a_second_run_is_refused_and_told_who_is_there(tmp_path: Path) -> None:
    lock = tmp_path / "run.lock"
    second = hold(lock, "run-2", tmp_path, ProcFs())
    with hold(lock, "run-1", tmp_path, ProcFs()), pytest.raises(StackBusy, match="run run-1") as busy:
        second.__enter__()
    assert "brownout stop" in str(busy.value)


@pytest.mark.system
def test_a_killed_run_keeps_no_lock_and_is_not_taken_for_alive(tmp_path: Path) -> None:
    lock = tmp_path / "run.lock"
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(lock)], stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert "held" == other.stdout.readline().strip()
        other.kill()
    assert (live_holder(lock, ProcFs()), read_holder(lock).run) == (None, "other-run")  # type: ignore[union-attr]
    with hold(lock, "run-2", tmp_path, ProcFs()):
        assert "run-2" == read_holder(lock).run  # type: ignore[union-attr]


def test_a_pid_that_was_given_to_somebody_else_is_not_the_holder(tmp_path: Path) -> None:
    lock = tmp_path / "run.lock"
    record = {"run": "old", "run_dir": "x", "pid": os.getpid(), "start_ticks": 1}
    lock.write_text(json.dumps(record))
    assert live_holder(lock, ProcFs()) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"run": 1}'])
def test_a_damaged_lock_file_is_nobody(tmp_path: Path, text: str) -> None:
    lock = tmp_path / "run.lock"
    lock.write_text(text)
    assert live_holder(lock, ProcFs()) is None
    with hold(lock, "run-1", tmp_path, ProcFs()):
        assert time.monotonic() > 0
