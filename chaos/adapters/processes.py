"""Processes of this machine, read from /proc and signalled without ever hitting a namesake.

A number alone says nothing: it is handed out again. Start time and number together name one process for good, and a
pidfd opened before the comparison keeps that name while the signal is sent.
"""

from __future__ import annotations

import contextlib
import os
import signal as signals
from pathlib import Path
from typing import NamedTuple, cast

from chaos.ports import ProcessId, ProcessState

_GONE = ("Z", "X", "x")


class _Stat(NamedTuple):
    state: str
    parent: int
    start_ticks: int


def parse_stat(text: str) -> _Stat:
    """Fields 3, 4 and 22 of /proc/PID/stat (proc_pid_stat(5)); the name before them may hold spaces and brackets."""
    fields = text[text.rindex(")") + 2 :].split()
    return _Stat(state=fields[0], parent=int(fields[1]), start_ticks=int(fields[19]))


class ProcFs:
    """The `Processes` port over a proc file system mounted at `root`."""

    def __init__(self, root: Path = Path("/proc")) -> None:
        """Signals go to the processes of this machine, wherever `root` is."""
        self._root = root

    def identify(self, pid: int) -> ProcessId | None:
        """The live process with this number now."""
        stat = self._stat(pid)
        return ProcessId(pid, stat.start_ticks) if stat and stat.state not in _GONE else None

    def state(self, process: ProcessId) -> ProcessState | None:
        """Its state letter, or None when that very process is gone."""
        stat = self._stat(process.pid)
        if stat is None or stat.start_ticks != process.start_ticks or stat.state in _GONE:
            return None
        return cast("ProcessState", stat.state)

    def children(self, process: ProcessId) -> tuple[ProcessId, ...]:
        """Live direct children, in order of number."""
        if self.state(process) is None:
            return ()
        found = (self.identify(pid) for pid in sorted(self._child_pids(process.pid)))
        return tuple(child for child in found if child)

    def signal(self, process: ProcessId, number: int) -> bool:
        """Send a signal to exactly that process. False when it is gone. Raises PermissionError."""
        try:
            handle = os.pidfd_open(process.pid)
        except ProcessLookupError:
            return False
        try:
            if self.state(process) is None:
                return False
            signals.pidfd_send_signal(handle, number)
        except ProcessLookupError:
            return False
        finally:
            os.close(handle)
        return True

    def with_argument(self, argument: str) -> tuple[ProcessId, ...]:
        """Live processes with this word on their command line, in order of number."""
        wanted, pids = argument.encode(), sorted(int(name) for name in os.listdir(self._root) if name.isdigit())  # noqa: PTH208  names only
        found = (self.identify(pid) for pid in pids if wanted in self._command_line(pid))
        return tuple(process for process in found if process)

    def _command_line(self, pid: int) -> list[bytes]:
        try:
            return (self._root / str(pid) / "cmdline").read_bytes().split(b"\0")
        except OSError:
            return []

    def _stat(self, pid: int) -> _Stat | None:
        try:
            return parse_stat((self._root / str(pid) / "stat").read_text(encoding="utf-8", errors="replace"))
        except (FileNotFoundError, ProcessLookupError):
            return None

    def _child_pids(self, pid: int) -> set[int]:
        """From the kernel's own list, one per thread; kernels without it need a look at every process."""
        tasks = self._root / str(pid) / "task"
        found: set[int] = set()
        try:
            for task in os.listdir(tasks):  # noqa: PTH208  names only; a Path for each thread costs more than the read
                with contextlib.suppress(ProcessLookupError):
                    found.update(map(int, (tasks / task / "children").read_text(encoding="ascii").split()))
        except FileNotFoundError:
            return self._scan_for_children(pid)
        return found

    def _scan_for_children(self, parent: int) -> set[int]:
        pids = (int(entry.name) for entry in self._root.iterdir() if entry.name.isdigit())
        return {pid for pid in pids if (stat := self._stat(pid)) and stat.parent == parent}
