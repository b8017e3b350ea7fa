"""The life of a saboteur: a process that does harm by being there, for as long as its warrant is a file.

    fault ── writes the warrant (its orders, JSON) ── starts us ──► harm in force ──► warrant gone ──► harm ended

Whoever removes the warrant ends the harm, also when nobody is left to send a signal; a saboteur that is started late,
after the revert, finds no warrant and does nothing.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

LOOK_EVERY_S = 0.02
Orders = Mapping[str, Any]
Harm = Callable[[Orders], AbstractContextManager[None]]
"""What each program offers as `harm`: entered, the harm is in force; left, it is over. Raises HarmFailed or OSError."""

NotPrograms = frozenset({"__init__", "life", "family", "mending", "ptrace", "syscalls", "vdso", "__main__"})
_NO_WARRANT = "its warrant is gone: the fault was reverted before it began"
_PR_SET_PDEATHSIG = 1


class HarmFailed(Exception):
    """The harm cannot be done here; the message says why."""


def detached(harm: Harm, warrant: Path) -> str:
    """Leave a child that does the harm while the warrant is there; what it has to say against it, "" when in force."""
    heard, saying = os.pipe()
    if os.fork() == 0:
        os.close(heard)
        _live(harm, warrant, saying)
    os.close(saying)
    with os.fdopen(heard, encoding="utf-8") as ear:
        return (ear.readline() or "it died without a word\n").removeprefix(_IN_FORCE)


_IN_FORCE = "in force\n"


def _live(harm: Harm, warrant: Path, saying: int) -> None:
    """Never returns."""
    status = 1
    try:
        os.setsid()
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        _let_go_of_terminal(saying)
        status = _harm_while(harm, warrant, saying)
    except (HarmFailed, OSError, ImportError, KeyError, ValueError) as failure:
        _say(saying, " ".join(str(failure).split() or [type(failure).__name__]) + "\n")
    finally:
        os._exit(status)


def _harm_while(harm: Harm, warrant: Path, saying: int) -> int:
    orders = _orders(warrant)
    with harm(orders):
        _say(saying, _IN_FORCE)
        while warrant.exists():
            time.sleep(LOOK_EVERY_S)
    return 0


def _orders(warrant: Path) -> Orders:
    try:
        orders: Orders = json.loads(warrant.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise HarmFailed(_NO_WARRANT) from None
    return orders


def _say(saying: int, text: str) -> None:
    """One line to who started us, who may have gone."""
    with contextlib.suppress(OSError):
        os.write(saying, text.encode())
        os.close(saying)


def _let_go_of_terminal(kept: int) -> None:
    """Standard streams go nowhere, and what the parent had open is closed: a saboteur outlives who started it."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    os.closerange(3, kept)
    os.closerange(kept + 1, 1024)


def fork_companion(work: Callable[[], None]) -> int:
    """A child that works until it or the saboteur dies, however that happens; its process number."""
    saboteur = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        die_with_parent(saboteur)
        work()
    finally:
        os._exit(1)


def die_with_parent(parent: int) -> None:
    """The kernel kills us when our parent ends (prctl(2), PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
