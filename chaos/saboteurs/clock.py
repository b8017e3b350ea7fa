"""Has the clock of some processes and of all their children tell a wrong time; everybody else's stays right.

What is changed lies in those processes' own memory and outlives us: it is put back when our harm is over, and by `mend`
when we were killed. Both find it by the mark in it, in whatever process it has got into.
"""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO

from chaos.saboteurs.family import harm_all, pids
from chaos.saboteurs.life import HarmFailed, Orders
from chaos.saboteurs.ptrace import Tracer, threads, why_not
from chaos.saboteurs.vdso import NOTHING, WORD, Page, Skew, Unsuitable, mark_in, our_page, place_in

_MANY_TRIES = 50
_GONE = (FileNotFoundError, ProcessLookupError)


@contextlib.contextmanager
def harm(orders: Orders) -> Iterator[None]:
    """Orders: `processes` as [pid, start ticks], `mark`, `ahead_s` (below 0 is behind) and `drift` (0.1
    gains a tenth of a second each second).
    """
    page = _our_page()
    ahead_ns = round(float(orders["ahead_s"]) * 1e9)
    skew = Skew(_mark(orders["mark"]), ahead_ns, float(orders["drift"]), time.time_ns())
    try:
        harm_all(orders["processes"], lambda pid: _skew(pid, page, skew))
        yield
    finally:
        mend(orders["mark"])


def mend(mark: str) -> None:
    """Put every process right that has the skew of this mark. Raises HarmFailed."""
    page, wanted = _our_page(), _mark(mark)
    for _ in range(_MANY_TRIES):  # one that was found may have had a child before it was put right
        skewed = [pid for pid in pids() if _mark_of(pid, page) == wanted]
        if not skewed:
            return
        for pid in skewed:
            _put_right(pid, page)


def _mark(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()[:WORD]


def _our_page() -> Page:
    try:
        return our_page()
    except Unsuitable as problem:
        raise HarmFailed(str(problem)) from problem


@dataclass(frozen=True)
class _Held:
    """A process's page in its memory."""

    memory: BinaryIO
    start: int

    def read(self, offset: int, size: int) -> bytes:
        self.memory.seek(self.start + offset)
        return self.memory.read(size)

    def write(self, words: Mapping[int, bytes]) -> None:
        """Each in one piece."""
        for offset, word in words.items():
            self.memory.seek(self.start + offset)
            self.memory.write(word)


@contextlib.contextmanager
def _page_of(pid: int) -> Iterator[_Held]:
    """Raises ProcessLookupError for a process that is gone or has none, and OSError."""
    place = place_in(pid)
    if place is None:
        raise ProcessLookupError(pid)
    with open(f"/proc/{pid}/mem", "r+b", buffering=0) as memory:  # noqa: PTH123  unbuffered: a word is one write
        yield _Held(memory, place)


def _mark_of(pid: int, page: Page) -> bytes | None:
    """Whose skew a process has. One that we may not look into is not one that we have changed."""
    with contextlib.suppress(OSError), _page_of(pid) as held:
        return mark_in(held.read(page.block, 2 * WORD))
    return None


def _put_right(pid: int, page: Page) -> None:
    """Needs no stop: a whole word at a time, and a thread that is in our code finds its way out of it. Raises
    HarmFailed.
    """
    try:
        with _page_of(pid) as held:
            held.write(page.right())
            held.write({page.block: NOTHING})
    except _GONE:
        return
    except OSError as problem:
        raise HarmFailed(f"the clock of process {pid} cannot be put right: {problem.strerror}") from problem


def _skew(pid: int, page: Page, skew: Skew) -> None:
    """Raises HarmFailed."""
    tracer = Tracer()
    try:
        tracer.seize(pid, calls=False)
    except PermissionError:
        raise HarmFailed(f"process {pid} cannot be stopped for a moment: {why_not(pid)}") from None
    tracer.stop(pid)
    try:
        with _page_of(pid) as held:
            _change(pid, tracer, page, skew, held)
    except _GONE:
        return
    finally:
        tracer.release(pid)


def _change(pid: int, tracer: Tracer, page: Page, skew: Skew, held: _Held) -> None:
    if mark_in(held.read(page.block, 2 * WORD)) == skew.mark:
        return  # its parent gave it ours
    if any(held.read(entry, WORD) != word for entry, word in page.right().items()):
        raise HarmFailed(f"the clock of process {pid} is changed already; let that fault end first")
    for _ in range(_MANY_TRIES):
        if not any(page.is_in_the_way(tracer.where(tid) - held.start) for tid in threads(pid)):
            break
        tracer.nudge(pid)
    held.write({page.block: skew.block()})
    held.write(page.wrong())
