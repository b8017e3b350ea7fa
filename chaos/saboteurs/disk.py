"""Fills folders of limited size and keeps them full; never a file system that the machine itself lives on."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from chaos.saboteurs.life import HarmFailed, Orders, fork_companion

_BLOCK, _PIECE = 4096, 16 << 20
_TOP_UP_S = 0.02


@contextlib.contextmanager
def harm(orders: Orders) -> Iterator[None]:
    """Orders: `folders`, the `most` bytes that the file system of each may have, and the `name` of the file to make."""
    folders = [Path(folder) for folder in orders["folders"]]
    for folder in folders:
        _must_be_small(folder, int(orders["most"]))
    fillers = [folder / orders["name"] for folder in folders]
    handles = [os.open(filler, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600) for filler in fillers]
    try:
        for handle in handles:
            _fill(handle)
        companion = fork_companion(lambda: _keep_full(handles))
        try:
            yield
        finally:
            os.kill(companion, signal.SIGKILL)
            os.waitpid(companion, 0)
    finally:
        for filler in fillers:
            filler.unlink(missing_ok=True)


def _must_be_small(folder: Path, most: int) -> None:
    """Whoever names a folder of the machine's own disk by mistake must not fill it."""
    size = os.statvfs(folder)
    if folder.stat().st_dev == Path("/").stat().st_dev or size.f_blocks * size.f_frsize > most:
        raise HarmFailed(f"{folder} is not on a file system of its own with at most {most >> 20} MiB; it is not filled")


def _fill(handle: int) -> None:
    """Take all the room there is, in ever smaller pieces (posix_fallocate(3))."""
    piece = _PIECE
    while piece >= _BLOCK:
        try:
            os.posix_fallocate(handle, os.fstat(handle).st_size, piece)
        except OSError:
            piece //= 2


def _keep_full(handles: Sequence[int]) -> None:
    """What somebody else sets free is taken too."""
    while True:
        for handle in handles:
            _fill(handle)
        time.sleep(_TOP_UP_S)
