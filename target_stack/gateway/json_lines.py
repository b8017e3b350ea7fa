"""A structured log: one JSON object a line, written behind the back of whoever adds to it.

Adding costs a queue's put; a thread writes what has come in the last 50 ms with one call. A kill therefore loses at
most those, and every line that is there is whole: a reader may only find the very last one cut. A full file is renamed
to `.1`, the older ones move up, and the oldest goes.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from queue import SimpleQueue
from typing import Any

_BATCH_S = 0.05
_MOST_WAITING = 20_000
"""Lines that may wait for a slow disk; what comes on top is counted and dropped."""

_Line = tuple[int, float, str, Mapping[str, Any]]


class JsonLines:
    """An open log. Use `add` from one thread; close it to have everything on disk."""

    def __init__(self, path: Path, *, file_bytes: int, files: int) -> None:
        """Append to a file, which is kept below `file_bytes`; `files` of them are kept. Raises OSError."""
        self._path, self._file_bytes, self._files = path, file_bytes, files
        self._descriptor, self._size = _open(path)
        self._queue: SimpleQueue[_Line | None] = SimpleQueue()
        self._closing = threading.Event()
        self._added = 0
        self.dropped = 0
        self._thread = threading.Thread(target=self._run, name="json-lines", daemon=True)
        self._thread.start()

    def add(self, mono: float, name: str, fields: Mapping[str, Any]) -> None:
        """Write down what happened at monotonic time `mono`. Numbers count from 1 in each life of the process."""
        self._added += 1
        if self._queue.qsize() < _MOST_WAITING:
            self._queue.put((self._added, mono, name, fields))
        else:
            self.dropped += 1  # the gap in the numbers says so too

    def close(self) -> None:
        """Write what waits, and end."""
        self._closing.set()
        self._queue.put(None)
        self._thread.join()
        os.close(self._descriptor)

    def _run(self) -> None:
        ended = False
        while not ended:
            lines = [self._queue.get()]
            self._closing.wait(_BATCH_S)
            while not self._queue.empty():
                lines.append(self._queue.get())
            ended = None in lines
            self._write([line for line in lines if line is not None])

    def _write(self, lines: list[_Line]) -> None:
        wall_minus_mono = time.time() - time.monotonic()
        data = "".join(_text(line, wall_minus_mono) for line in lines).encode()
        try:
            if self._size and self._size + len(data) > self._file_bytes:
                self._rotate()
            written = os.write(self._descriptor, data) if data else 0
            if written < len(data):
                written += os.write(self._descriptor, b"\n")  # a disk that ran full in a line must not spoil the next
                self.dropped += 1
        except OSError:
            self.dropped += len(lines)
        else:
            self._size += written

    def _rotate(self) -> None:
        os.close(self._descriptor)
        for number in range(self._files - 1, 0, -1):
            older = self._path.with_name(f"{self._path.name}.{number}")
            newer = self._path.with_name(f"{self._path.name}.{number - 1}") if number > 1 else self._path
            if newer.exists():
                newer.replace(older)
        self._descriptor, self._size = _open(self._path)


def _open(path: Path) -> tuple[int, int]:
    """Descriptor and size; a line that a kill has cut gets its end."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    size = os.fstat(descriptor).st_size
    if size and os.pread(descriptor, 1, size - 1) != b"\n":
        size += os.write(descriptor, b"\n")
    return descriptor, size


def _text(line: _Line, wall_minus_mono: float) -> str:
    number, mono, name, fields = line
    record = {"seq": number, "mono": round(mono, 6), "wall": round(mono + wall_minus_mono, 6), "name": name, **fields}
    return json.dumps(record, separators=(",", ":"), default=str) + "\n"
