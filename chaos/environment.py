"""`environment.json`: what this run ran on, so that two runs can be told apart later, or known to be of one machine.

The name of the host is not in it: run directories get passed on, and a name says where to attack. `host` is a keyed
hash of the machine's id and name, as machine-id(5) asks for, so runs of one machine can still be recognised. What the
run was like for its timers (`noise`) is added when it ends; a run that was killed keeps what was written at its start.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any


def describe(project: Path | None, **run: Any) -> dict[str, Any]:
    """Versions, host and commit, and what is handed in of the run (seed, profile, weaknesses). A part that cannot be
    had is null, never guessed.
    """
    return {
        "version": 1,
        **run,
        "python": platform.python_version(),
        "system": platform.system(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "host": _host(),
        "cpu": _after(Path("/proc/cpuinfo"), "model name"),
        "cores": os.cpu_count(),
        "cores_allowed": len(os.sched_getaffinity(0)),
        "memory_bytes": _memory_bytes(),
        "load_average": list(os.getloadavg()),
        "distributions": {name: _version(name) for name in _distributions()},
        "commit": _commit(project),
    }


def _distributions() -> list[str]:
    """Ours and all that it asks for; of the extras those that are here."""
    wanted = metadata.requires("brownout") if _version("brownout") else None
    names = {re.split(r"[^A-Za-z0-9._-]", line, maxsplit=1)[0]: "extra ==" in line for line in reversed(wanted or [])}
    return ["brownout", *sorted(name for name, extra in names.items() if not extra or _version(name))]


def _host() -> str:
    machine = _text(Path("/etc/machine-id")).strip()
    return hmac.new(f"brownout {machine}".encode(), platform.node().encode(), hashlib.sha256).hexdigest()[:16]


def _memory_bytes() -> int | None:
    told = _after(Path("/proc/meminfo"), "MemTotal")
    return int(told.split()[0]) * 1024 if told else None


def _after(path: Path, key: str) -> str | None:
    """What stands behind the first `key:` of a file of the kernel."""
    found = re.search(rf"^{key}\s*:\s*(.+)$", _text(path), re.MULTILINE)
    return found[1].strip() if found else None


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _commit(project: Path | None) -> str | None:
    """The commit of the experiments' repository, with `+` behind it when files differ from it."""
    if project is None:
        return None
    git = ["git", "-C", str(project)]
    try:
        head = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5, check=True).stdout
        changed = subprocess.run(
            [*git, "status", "--porcelain", "-uno"], capture_output=True, text=True, timeout=5, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    return head.strip() + ("+" if changed.strip() else "")
