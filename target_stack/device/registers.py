"""The register file of one GPU: a page of memory that the engine on it and the device process both map.

Every register is one aligned double with one writer, so a reader sees the old or the new value and nobody waits:

    the engine writes       pid  memory_bytes  busy_s  steps
    the device writes       total_bytes  reserved_bytes  speed  hung  lost  unusable  faults

`faults` counts what has destroyed every context on the device: an engine that sees it rise has lost its GPU work.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Self

_NAMES = (
    "pid",
    "memory_bytes",
    "busy_s",
    "steps",
    "total_bytes",
    "reserved_bytes",
    "speed",
    "hung",
    "lost",
    "unusable",
    "faults",
)
_PLACE = {name: place for place, name in enumerate(_NAMES)}
_BYTES = 8 * len(_NAMES)


class Registers:
    """Numbers by name. All begin at 0; a `total_bytes` of 0 means that no device process has spoken yet."""

    def __init__(self, memory: mmap.mmap | bytearray) -> None:
        """Over this memory."""
        self._values = memoryview(memory)[:_BYTES].cast("d")

    @classmethod
    def at(cls, path: Path) -> Self:
        """The registers in this file, made if need be. Raises OSError."""
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if os.fstat(fd).st_size < mmap.PAGESIZE:
                os.ftruncate(fd, mmap.PAGESIZE)
            return cls(mmap.mmap(fd, mmap.PAGESIZE))
        finally:
            os.close(fd)

    @classmethod
    def private(cls) -> Self:
        """Registers that nobody else sees."""
        return cls(bytearray(_BYTES))

    def __getitem__(self, name: str) -> float:
        """The value of a register."""
        return self._values[_PLACE[name]]

    def __setitem__(self, name: str, value: float) -> None:
        """Write a register."""
        self._values[_PLACE[name]] = value
