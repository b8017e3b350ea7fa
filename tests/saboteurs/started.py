"""Saboteurs as tests start them, find them and wait for them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from chaos.adapters.processes import ProcFs
from chaos.adapters.programs import LocalPrograms
from chaos.ports import ProcessId, Ran

PROCESSES = ProcFs()


def begin(warrant: Path, program: str = "cpu") -> Ran:
    return asyncio.run(LocalPrograms().sabotage(program, warrant))


def family(warrant: Path) -> list[ProcessId]:
    """The saboteur, then its companions, which have the same command line."""
    found = PROCESSES.with_argument(str(warrant))
    return sorted(found, key=lambda each: (each not in _parents(found), each.pid))


def _parents(found: tuple[ProcessId, ...]) -> set[ProcessId]:
    return {each for each in found if set(PROCESSES.children(each)) & set(found)}


def soon(held: Callable[[], bool], within_s: float = 3.0) -> bool:
    give_up = time.monotonic() + within_s
    while not held() and time.monotonic() < give_up:
        time.sleep(0.01)
    return held()
