"""What this machine has of what faults need."""

from __future__ import annotations

import importlib.util
import os
import shutil

from chaos.adapters import kernel
from chaos.ports import Need

_KERNEL = {"nfnetlink_queue": kernel.packet_queues}


def has(need: Need) -> bool:
    """Whether it is there now."""
    match need.kind:
        case "root":
            return os.geteuid() == 0
        case "tool":
            return shutil.which(need.name) is not None
        case "module":
            return importlib.util.find_spec(need.name) is not None
        case "path":
            return os.access(need.name, os.R_OK | os.W_OK)
        case "kernel":
            return _KERNEL[need.name]()
