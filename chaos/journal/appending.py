"""Append whole pieces to a file, or none of a piece: what is in the file is always a row of complete pieces.

Every piece is one `os.write` on an O_APPEND descriptor, so it is in the page cache when the call returns and SIGKILL
cannot take it back. A short write (full disk, quota) is cut off again before anyone hears of it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

Write = Callable[[int, bytes], int]

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class JournalFull(OSError):
    """No room for more evidence. Everything written before is still there; `filename` says which file."""

    def __init__(self, path: Path, why: OSError | None = None) -> None:
        """Name the file; errno is ENOSPC unless the system said something more exact."""
        number = why.errno if why and why.errno else errno.ENOSPC
        super().__init__(number, "no room left for evidence; free space and run again", str(path))


class AppendFile:
    """A file that only grows. Created anew: one writer, never a second. Raises FileExistsError, OSError."""

    def __init__(self, path: Path, write: Write = os.write) -> None:
        """`write` stands in for os.write where a test wants a full disk."""
        self.path = path
        self._write = write
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self._size = 0

    def append(self, piece: bytes) -> None:
        """Write all of `piece` or nothing of it. Raises JournalFull when there is no room, OSError otherwise."""
        try:
            written = self._write(self._fd, piece)
        except OSError as error:
            os.ftruncate(self._fd, self._size)
            if error.errno in _NO_ROOM:
                raise JournalFull(self.path, error) from error
            raise
        if written != len(piece):
            os.ftruncate(self._fd, self._size)
            raise JournalFull(self.path)
        self._size += written

    def close(self) -> None:
        """Put everything on the disk and let go. Safe to repeat."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
