"""Unix time that nobody can step: the monotonic clock, and what was between the two when they were first compared.

The difference is kept in a file, so that a deadline stored by one process means the same to the next one of this boot.
A step of the wall clock, or one process's own wrong idea of the time, moves no deadline and no lease.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

FILE = "clock.json"
Clock = Callable[[], float]


def steady_clock(folder: Path, boot: str, wall: Clock = time.time, mono: Clock = time.monotonic) -> Clock:
    """The clock of this folder; `boot` names the boot, as the monotonic clock begins anew with each. Raises OSError."""
    path = folder / FILE
    difference = _known(path, boot)
    if difference is None:
        difference = wall() - mono()
        fresh = path.with_suffix(".new")
        fresh.write_text(json.dumps({"boot": boot, "unix_minus_monotonic_s": difference}), "utf-8")
        fresh.replace(path)
    ahead_s = difference
    return lambda: mono() + ahead_s


def this_boot() -> str:
    """Its name (proc(5), /proc/sys/kernel/random/boot_id). Raises OSError."""
    return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()


def _known(path: Path, boot: str) -> float | None:
    try:
        record = json.loads(path.read_text("utf-8"))
        return float(record["unix_minus_monotonic_s"]) if record["boot"] == boot else None
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None
