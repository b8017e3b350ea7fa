"""Takes memory of the machine and keeps it; the kernel ends this process before any other when memory runs out."""

from __future__ import annotations

import contextlib
import mmap
import re
from collections.abc import Iterator
from pathlib import Path

from chaos.saboteurs.life import HarmFailed, Orders

_PIECE = 16 << 20


@contextlib.contextmanager
def harm(orders: Orders) -> Iterator[None]:
    """Orders: `bytes` to take, and `reserve`, the free bytes below which nothing more is taken."""
    Path("/proc/self/oom_score_adj").write_text("1000")
    wanted, taken = int(orders["bytes"]), []
    while wanted > 0:
        if available() - _PIECE < int(orders["reserve"]):
            raise HarmFailed(f"only {available() >> 20} MiB of memory are free; take a smaller share")
        taken.append(_touched(min(_PIECE, wanted)))
        wanted -= _PIECE
    try:
        yield
    finally:
        for piece in taken:
            piece.close()


def _touched(size: int) -> mmap.mmap:
    """Memory that is there: the kernel gives a page only to who writes to it."""
    piece = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for start in range(0, size, mmap.PAGESIZE):
        piece[start] = 1
    return piece


def available() -> int:
    """Bytes that a new process could have (proc_meminfo(5), MemAvailable)."""
    found = re.search(r"^MemAvailable: +(\d+) kB$", Path("/proc/meminfo").read_text("ascii"), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0
