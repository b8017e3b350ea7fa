"""What processes use of the machine, by the kernel's account in /proc."""

from __future__ import annotations

import re
from pathlib import Path

from chaos.faults.grips.grip import family
from chaos.ports import Files, Host

_TICKS_PER_S = 100
"""USER_HZ, which is the unit of /proc on every architecture in use (proc_pid_stat(5))."""


def run_time_s(warrant: str, host: Host) -> float:
    """utime and stime of whoever acts on a warrant (proc_pid_stat(5), fields 14 and 15)."""
    ticks = 0
    for process in family(host.processes.with_argument(warrant), host.processes):
        stat = host.files.read(Path(f"/proc/{process.pid}/stat"))
        if stat:
            ticks += sum(map(int, stat.rpartition(")")[2].split()[11:13]))
    return ticks / _TICKS_PER_S


async def cores_used(warrant: str, look_s: float, host: Host) -> float:
    """On how many cores they run, between two looks."""
    before, began = run_time_s(warrant, host), host.clock.now()
    await host.clock.sleep_until(began + look_s)
    return (run_time_s(warrant, host) - before) / max(host.clock.now() - began, 1e-9)


def cores(files: Files) -> int:
    """How many there are."""
    return max(1, len(re.findall(r"^cpu\d+ ", files.read(Path("/proc/stat")) or "", re.MULTILINE)))


def meminfo(name: str, files: Files) -> int:
    """In bytes (proc_meminfo(5))."""
    found = re.search(rf"^{name}: +(\d+) kB$", files.read(Path("/proc/meminfo")) or "", re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def resident(warrant: str, host: Host) -> int:
    """Bytes that whoever acts on a warrant holds (proc_pid_status(5), VmRSS)."""
    statuses = (host.files.read(Path(f"/proc/{p.pid}/status")) or "" for p in host.processes.with_argument(warrant))
    found = (re.search(r"^VmRSS:\s+(\d+) kB$", status, re.MULTILINE) for status in statuses)
    return sum(int(match[1]) * 1024 for match in found if match)
