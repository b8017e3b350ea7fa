"""How quiet was the machine? Measured while a run goes on, so that a doubtful number can be told from a busy host.

A timer of 50 ms in the harness's own loop tells what any timer of the run could be late by, for whatever reason. Once a
second the kernel is asked what others took: steal (proc_stat(5)), pressure on the CPUs (PSI), runnable tasks.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaos.ports import Clock, Files

TICK_S = 0.05
LOOK_S = 1.0

_STAT, _PRESSURE, _LOAD = (Path(f"/proc/{name}") for name in ("stat", "pressure/cpu", "loadavg"))
_STEAL = 7
"""Place of `steal` in the first line of /proc/stat, from 0 for `user`."""


@dataclass
class Noise:
    """What was measured so far. `watch` until cancelled, then `summary`."""

    late_s: array[float] = field(default_factory=lambda: array("d"))
    steal: list[float] = field(default_factory=list)
    pressure: list[float] = field(default_factory=list)
    load: list[float] = field(default_factory=list)

    async def watch(self, clock: Clock, files: Files) -> None:
        """Tick and look until cancelled. A tick that comes later than the next is due replaces it."""
        due = look_at = clock.now()
        before = _looked(files)
        while True:
            due = max(due + TICK_S, clock.now())
            await clock.sleep_until(due)
            now = clock.now()
            self.late_s.append(now - due)
            if now >= look_at + LOOK_S:
                after = _looked(files)
                self._add(before, after, now - look_at)
                before, look_at = after, now

    def _add(self, before: _Look, after: _Look, over_s: float) -> None:
        ticks = after.ticks - before.ticks
        if ticks > 0:
            self.steal.append((after.steal - before.steal) / ticks)
        if before.stalled_us is not None and after.stalled_us is not None:
            self.pressure.append((after.stalled_us - before.stalled_us) / 1e6 / over_s)
        if after.load is not None:
            self.load.append(after.load)

    def summary(self) -> dict[str, Any]:
        """For `environment.json`. Shares are of all CPU time, a second each; null where the kernel does not tell."""
        return {
            "tick_s": TICK_S,
            "ticks": len(self.late_s),
            "timer_late_s": _spread(self.late_s),
            "steal_share": _spread(self.steal),
            "cpu_pressure_share": _spread(self.pressure),
            "load_average": _spread(self.load),
        }


@dataclass(frozen=True)
class _Look:
    """Counters of the kernel since it started; `stalled_us` and `load` are None where it has none."""

    ticks: int
    steal: int
    stalled_us: int | None
    load: float | None


def _looked(files: Files) -> _Look:
    counts = [int(word) for word in _first_line(files, _STAT).split()[1:9]]
    pressure = _first_line(files, _PRESSURE).rpartition("total=")[2]
    load = _first_line(files, _LOAD).partition(" ")[0]
    return _Look(
        ticks=sum(counts),
        steal=counts[_STEAL] if len(counts) > _STEAL else 0,
        stalled_us=int(pressure) if pressure.isdigit() else None,
        load=float(load) if load else None,
    )


def _first_line(files: Files, path: Path) -> str:
    """Nothing where the kernel has no such file, or keeps no such figures in it."""
    try:
        return (files.read(path) or "").partition("\n")[0]
    except OSError:
        return ""


def _spread(values: Iterable[float]) -> dict[str, float] | None:
    ordered = sorted(values)
    if not ordered:
        return None
    ranks = {name: math.ceil(share * len(ordered)) - 1 for name, share in (("p50", 0.5), ("p99", 0.99))}
    return {**{name: round(ordered[rank], 6) for name, rank in ranks.items()}, "max": round(ordered[-1], 6)}
