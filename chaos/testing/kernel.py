"""What an in-memory kernel tells of its processes and memory in /proc, and how it limits them.

world.kernel.open_files[pid] = {0, 1, 2, 7}      # the descriptors of a process
world.kernel.soft_limit(pid)                     # as `prlimit` has set it
world.kernel.root = False                        # we are somebody else
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from chaos.ports import Clock, Ran
from chaos.testing.programs import FakePrograms
from chaos.testing.stack import ProcessTable

MIB = 1 << 20
_USUAL = (1024, 4096)
_TICKS_PER_S = 100


class FakeKernel:
    """/proc, and the tool `prlimit`. A process has ten files open and uses half a core for every core that its
    saboteur's orders name.
    """

    def __init__(self, processes: ProcessTable, programs: FakePrograms, clock: Clock) -> None:
        """A machine of 8 GiB, half of it free, and we are root."""
        self.root = True
        self.available = 4096 * MIB
        self.open_files: dict[int, set[int]] = {}
        self._limits: dict[int, tuple[int, int]] = {}
        self._processes, self._programs, self._clock = processes, programs, clock
        programs.tools["prlimit"] = self._prlimit

    def soft_limit(self, pid: int) -> int:
        """How many descriptors a process may have; a child has its parent's limit."""
        return self._limit(pid)[0]

    def full(self, pid: int) -> bool:
        """Whether it can open nothing more."""
        held = self._held(pid)
        return all(number in held for number in range(self.soft_limit(pid)))

    def owns(self, path: Path) -> bool:
        """Files of /proc but for the groups of a process."""
        return path.parts[:2] == ("/", "proc") and path.name not in ("cgroup", "mountinfo")

    def read(self, path: Path) -> str | None:
        """A file of /proc as text; None for a process that is gone."""
        if path.name == "meminfo":
            taken = sum(int(orders["bytes"]) for orders in self._programs.at_work("memory"))
            return f"MemTotal: {8192 << 10} kB\nMemAvailable: {(self.available - taken) >> 10} kB\n"
        if path.parts[2:] == ("stat",):
            return "cpu  9 0 9 99 0 0 0 0 0 0\ncpu0 4 0 4 49 0 0 0 0 0 0\ncpu1 5 0 5 50 0 0 0 0 0 0\n"
        if path.parts[2] == "self":
            user = 0 if self.root else 1000
            return f"Name:\tpython\nUid:\t{user}\t{user}\t{user}\t{user}\n"
        pid = int(path.parts[2])
        files: Mapping[str, Callable[[int], str]] = {
            "limits": self._limits_text,
            "stat": self._stat_text,
            "status": self._status_text,
        }
        return files[path.name](pid) if self._processes.identify(pid) else None

    def names(self, folder: Path) -> tuple[str, ...]:
        """The open descriptors in /proc/PID/fdinfo."""
        pid = int(folder.parts[2])
        return tuple(sorted(map(str, self._held(pid)))) if self._processes.identify(pid) else ()

    def _held(self, pid: int) -> set[int]:
        return self.open_files.setdefault(pid, set(range(10)))

    def _limit(self, pid: int) -> tuple[int, int]:
        parent = self._processes.parent(pid)
        return self._limits.get(pid) or (self._limit(parent) if parent else _USUAL)

    def _prlimit(self, words: Sequence[str]) -> Ran:
        pid, (soft, _, hard) = int(words[2]), words[3].removeprefix("--nofile=").partition(":")
        if self._processes.identify(pid) is None:
            return Ran(1, "", "prlimit: failed to get old NOFILE limit: No such process")
        self._limits[pid] = (int(soft), int(hard) if hard else self._limit(pid)[1])
        return Ran(0, "", "")

    def _limits_text(self, pid: int) -> str:
        soft, hard = self._limit(pid)
        return f"Max processes             96364   96364   processes\nMax open files            {soft}  {hard}  files\n"

    def _stat_text(self, pid: int) -> str:
        wanted = sum(o["cores"] * o["share"] for o in self._orders(pid, "cpu"))
        wanted += sum(o["share"] for o in self._orders(pid, "torch_hog") if o["resource"] == "time")
        ticks = round(wanted * self._clock.now() * _TICKS_PER_S)
        return f"{pid} (python) S 1 {pid} {pid} 0 -1 0 0 0 0 0 {ticks} 0 0 0 20 0 1 0 {pid * 10}\n"

    def _status_text(self, pid: int) -> str:
        orders = (*self._orders(pid, "memory"), *self._orders(pid, "torch_hog"))
        held = sum(int(each.get("bytes", 0)) for each in orders)
        return f"Name:\tpython\nUid:\t1\t1\t1\t1\nVmRSS:\t{(held + 8 * MIB) >> 10} kB\n"

    def _orders(self, pid: int, program: str) -> list[Mapping[str, Any]]:
        return [orders for orders in self._programs.at_work(program) if self._programs.pid_of(orders) == pid]
