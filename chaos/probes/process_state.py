"""What the kernel says about the processes of a target: are they there, are they stopped, how much memory do they hold?

The kernel cannot be fooled by a server that still answers /health, which makes this the second opinion on every
process fault.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from chaos.inventory import Target
from chaos.journal.series import series_name
from chaos.ports import Host, ProcessId
from chaos.probes.probe import Reading

_RESIDENT = re.compile(r"^VmRSS:\s+(\d+) kB", re.MULTILINE)
_STOPPED = ("T", "t")


@dataclass(frozen=True)
class ProcessState:
    """Looks at each process of a target. `part` counts from 0 in inventory order: pids change at every restart."""

    kind: ClassVar[str] = "process_state"
    summary: ClassVar[str] = "looks at a target's processes: up, stopped, resident memory"
    period_s: ClassVar[float] = 0.5

    def applies_to(self, target: Target) -> bool:
        """Targets whose processes run on this machine."""
        return bool(target.pids)

    async def read(self, target: Target, host: Host) -> Reading:
        """`proc_up`, `proc_stopped` (0 or 1) and `rss_bytes` for each part."""
        values: dict[str, float] = {}
        for part, pid in enumerate(target.pids):
            for name, value in _look(host, pid).items():
                values[series_name(name, {"part": str(part)})] = value
        return Reading(self.kind, target.name, values=values)


def _look(host: Host, pid: int) -> dict[str, float]:
    process = host.processes.identify(pid)
    state = host.processes.state(process) if process else None
    found = {"proc_up": float(state is not None), "proc_stopped": float(state in _STOPPED)}
    resident = _resident_bytes(host, process) if process and state else None
    return found if resident is None else found | {"rss_bytes": resident}


def _resident_bytes(host: Host, process: ProcessId) -> float | None:
    """VmRSS of /proc/PID/status, or None when the process went meanwhile."""
    try:
        text = host.files.read(Path("/proc") / str(process.pid) / "status")
    except OSError:
        return None
    found = _RESIDENT.search(text or "")
    return float(found[1]) * 1024 if found else None
