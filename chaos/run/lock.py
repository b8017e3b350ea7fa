"""One run at a time per stack: a kernel file lock, which a dead run cannot keep."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from chaos.ports import Processes, ProcessId


@dataclass(frozen=True)
class Holder:
    """The run that holds the lock: enough to name it and to signal exactly it."""

    run: str
    run_dir: str
    pid: int
    start_ticks: int


class StackBusy(Exception):
    """Another live run holds this stack."""

    def __init__(self, holder: Holder | None) -> None:
        """Name the holder when the lock file tells it."""
        who = f"run {holder.run} (pid {holder.pid})" if holder else "another run"
        super().__init__(f"the stack is in use by {who}; wait for it, or end it with `brownout stop`")
        self.holder = holder


@contextmanager
def hold(path: Path, run: str, run_dir: Path, processes: Processes) -> Iterator[None]:
    """Hold the lock for the duration of the block. Raises StackBusy, OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise StackBusy(read_holder(path)) from None
        me = processes.identify(os.getpid())
        ticks = me.start_ticks if me else 0
        text = json.dumps({"run": run, "run_dir": str(run_dir), "pid": os.getpid(), "start_ticks": ticks})
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, text.encode(), 0)
        try:
            yield
        finally:  # a process that goes on to other things must not be taken for a run
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


def read_holder(path: Path) -> Holder | None:
    """Who wrote the lock file last and has not cleared it; says nothing about whether it is alive."""
    try:
        return Holder(**json.loads(path.read_text()))
    except (OSError, ValueError, TypeError):
        return None


def live_holder(path: Path, processes: Processes) -> Holder | None:
    """The run that is named in the lock file and whose process lives; the lock itself is not touched."""
    holder = read_holder(path)
    if holder is None or processes.state(ProcessId(holder.pid, holder.start_ticks)) is None:
        return None
    return holder
