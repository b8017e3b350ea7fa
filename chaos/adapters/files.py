"""Whole files, written so that a crash at any instant leaves the old content or the new, never half of one."""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path


class LocalFiles:
    """The `Files` port on this machine."""

    def read(self, path: Path) -> str | None:
        """The text, or None when there is no such file. Bytes that are no UTF-8 come back as replacement characters."""
        try:
            return path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
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
        with contextlib.suppress(FileNotFoundError):
            return tuple(sorted(p.name for p in folder.iterdir() if not _is_draft(p.name) and p.is_file()))
        return ()

    def sweep(self, folder: Path, prefix: str) -> None:
        """Remove drafts of files whose names begin with `prefix`; their writer must be dead."""
        with contextlib.suppress(FileNotFoundError):
            for path in folder.iterdir():
                if _is_draft(path.name) and path.name.startswith(f".{prefix}"):
                    path.unlink(missing_ok=True)


def _is_draft(name: str) -> bool:
    return name.startswith(".") and name.endswith(".draft")


def _sync_folder(folder: Path) -> None:
    """Make the rename itself durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
