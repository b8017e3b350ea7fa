"""Whole files, written so that a crash at any instant leaves the old content or the new, never half of one."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

_BLOCK = 4096


class LocalFiles:
    """The `Files` port on this machine."""

    def read(self, path: Path) -> str | None:
        """The text, or None when there is no such file (any more: a process may end while its file in /proc is read).
        Bytes that are no UTF-8 come back as replacement characters.
        """
        try:
            return path.read_text(encoding="utf-8", errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            return None

    def write_atomic(self, path: Path, text: str) -> None:
        """Write beside it, fsync, rename, fsync the folder; missing folders are made. Raises OSError."""
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{os.getpid()}-{time.monotonic_ns()}.draft")
        try:
            with draft.open("x", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)

    def remove(self, path: Path) -> None:
        """Remove if present."""
        path.unlink(missing_ok=True)

    def names(self, folder: Path) -> tuple[str, ...]:
        """Sorted file names in a folder; drafts of unfinished writes are no files yet."""
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            return tuple(sorted(p.name for p in folder.iterdir() if not _is_draft(p.name) and p.is_file()))
        return ()

    def sweep(self, folder: Path, prefix: str) -> None:
        """Remove drafts of files whose names begin with `prefix`; their writer must be dead."""
        with contextlib.suppress(FileNotFoundError):
            for path in folder.iterdir():
                if _is_draft(path.name) and path.name.startswith(f".{prefix}"):
                    path.unlink(missing_ok=True)

    def write_through(self, path: Path, text: str) -> None:
        """One write(2) into a file that is there. Raises OSError."""
        handle = os.open(path, os.O_WRONLY)
        try:
            os.write(handle, text.encode())
        finally:
            os.close(handle)

    def make_folder(self, path: Path) -> None:
        """Make a folder. Raises OSError."""
        path.mkdir(exist_ok=True)

    def remove_folder(self, path: Path) -> bool:
        """Remove a folder; a control group is empty when no process is in it, whatever files it shows."""
        with contextlib.suppress(OSError):
            path.rmdir()
        return not path.exists()

    def trial(self, folder: Path) -> int:
        """One block, written and synced (open(2), O_TMPFILE)."""
        try:
            handle = os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o600)
            try:
                os.write(handle, bytes(_BLOCK))
                os.fsync(handle)
            finally:
                os.close(handle)
        except OSError as failure:
            return failure.errno or 0
        return 0


def _is_draft(name: str) -> bool:
    return name.startswith(".") and name.endswith(".draft")


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
