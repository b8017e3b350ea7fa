"""A folder for what can be made again: `$XDG_CACHE_HOME/brownout`, read and written whole or not at all.

Whoever cannot write there works without: nothing kept here is needed, it only saves time.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Where this user's caches lie (XDG base directory specification: a relative path counts as unset)."""
    given = Path(environment.get("XDG_CACHE_HOME", ""))
    base = given if given.is_absolute() else Path(environment.get("HOME", "/nonexistent")) / ".cache"
    return base / "brownout"


def cached(path: Path, make: Callable[[], bytes]) -> bytes:
    """The file's bytes, made and kept when it is not there. Two makers at once both get theirs; the last one stays."""
    kept = look_up(path)
    if kept is not None:
        return kept
    made = make()
    keep(path, made)
    return made


def look_up(path: Path) -> bytes | None:
    """The file's bytes, or None when it cannot be read."""
    try:
        return path.read_bytes()
    except OSError:
        return None


def keep(path: Path, data: bytes) -> None:
    """Put a file in place whole; a folder that cannot be written is no error."""
    with contextlib.suppress(OSError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, fresh = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
            Path(fresh).replace(path)
        except OSError:
            Path(fresh).unlink(missing_ok=True)
