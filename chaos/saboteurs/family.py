"""Processes and all that they have started, while they go on starting more."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from chaos.saboteurs.life import HarmFailed

_MANY_ROUNDS = 50


class _Process(NamedTuple):
    pid: int
    parent: int
    start_ticks: int


def harm_all(roots: Iterable[tuple[int, int]], harm: Callable[[int], None]) -> None:
    """Harm each of these (number, start time in ticks) and of their descendants once. `harm` must see to it that later
    children of a harmed process need none of it. Raises HarmFailed when nobody is there, and what `harm` raises.
    """
    named, harmed = {tuple(root) for root in roots}, set[int]()
    for _ in range(_MANY_ROUNDS):
        fresh = [pid for pid in _family(named) if pid not in harmed]
        if not fresh:
            break
        for pid in fresh:
            harm(pid)
        harmed.update(fresh)
    if not harmed:
        raise HarmFailed("none of its processes is there any more")


def pids() -> list[int]:
    """Of all processes."""
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208  names only


def _family(roots: set[tuple[int, ...]]) -> list[int]:
    """Parents first."""
    all_of_them = list(_processes())
    found = [each.pid for each in all_of_them if (each.pid, each.start_ticks) in roots]
    for parent in found:
        found += [each.pid for each in all_of_them if each.parent == parent and each.pid not in found]
    return found


def _processes() -> Iterator[_Process]:
    """Live ones (proc_pid_stat(5): fields 3, 4 and 22, after a name that may hold anything)."""
    for pid in pids():
        try:
            text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        fields = text[text.rindex(")") + 2 :].split()
        if fields[0] not in "ZX":
            yield _Process(pid, int(fields[1]), int(fields[19]))
