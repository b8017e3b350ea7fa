"""What this machine has of what faults need."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
from pathlib import Path

from chaos.adapters import kernel
from chaos.ports import Need

_KERNEL = {"nfnetlink_queue": kernel.packet_queues}
_CAP_SYS_PTRACE = 19
"""capabilities(7), linux/capability.h."""


def has(need: Need) -> bool:
    """Whether it is there now."""
    match need.kind:
        case "root":
            return os.geteuid() == 0
        case "trace":
            return _may_trace()
        case "machine":
            return platform.machine() == need.name
        case "tool":
            return shutil.which(need.name) is not None
        case "module":
            return importlib.util.find_spec(need.name) is not None
        case "path":
            return os.access(need.name, os.R_OK | os.W_OK)
        case "kernel":
            return _KERNEL[need.name]()


def _may_trace() -> bool:
    """With CAP_SYS_PTRACE any process may be traced, else those of one's own user unless Yama forbids it
    (admin-guide/LSM/Yama).
    """
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    held = next((line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")), "0")
    if int(held, 16) >> _CAP_SYS_PTRACE & 1:
        return True
    try:
        return Path("/proc/sys/kernel/yama/ptrace_scope").read_text(encoding="ascii").strip() == "0"
    except OSError:
        return True
