"""The single writer of the journal. A record is on its way to the disk when `record` returns; nothing waits in memory.

Journal records are few (samples and readings have files of their own), so each is written at once, whole, on an
O_APPEND descriptor: SIGKILL at any instant leaves every earlier line in place. All calls come from one event loop;
none awaits.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from chaos.journal.appending import AppendFile, JournalFull, Write
from chaos.journal.chain import GENESIS, encode
from chaos.journal.masking import Mask
from chaos.journal.record import KINDS, Record
from chaos.ports import Clock

JOURNAL_FILE = "journal.jsonl"


class Recorder:
    """Writes `journal.jsonl` of one run. `origin` is the monotonic time of t=0."""

    def __init__(
        self, folder: Path, clock: Clock, origin: float, *, secrets: Iterable[str] = (), write: Write = os.write
    ) -> None:
        """Create the file. Raises FileExistsError when the folder has a journal already, OSError, ValueError for a
        secret too short.
        """
        self._clock = clock
        self._origin = origin
        self._mask = Mask(secrets)
        self._file = AppendFile(folder / JOURNAL_FILE, write)
        self._prev = GENESIS
        self._waiting: list[bytes] = []
        self._full = False
        self.count = 0

    @property
    def full(self) -> bool:
        """Whether lines wait in memory because the disk has no room."""
        return self._full

    def record(self, kind: str, /, **fields: Any) -> Record:
        """Append a record with the present time. Raises JournalFull once (see `flush`), ValueError for an unknown
        kind.
        """
        return self.record_at(self._clock.now() - self._origin, kind, **fields)

    def record_at(self, t: float, kind: str, /, **fields: Any) -> Record:
        """Append a record of something that happened at `t` (seconds since the run began). Raises as `record` does."""
        if kind not in KINDS:
            raise ValueError(f"no journal record is called {kind!r}")
        record = Record(n=self.count, t=t, kind=kind, fields=self._mask.value(fields))
        line, self._prev = encode(record, self._prev)
        self.count += 1
        self._waiting.append(line)
        self.flush()
        return record

    def flush(self) -> None:
        """Write what waits. Raises JournalFull the first time there is no room, and is silent about it after that.

        The shutdown that follows must not break on the same trouble again; its lines are kept and retried each time.
        """
        while self._waiting:
            try:
                self._file.append(self._waiting[0])
            except JournalFull:
                first, self._full = not self._full, True
                if first:
                    raise
                return
            del self._waiting[0]
        self._full = False

    def seal(self, *, sha256: Mapping[str, str] | None = None, **counts: int) -> None:
        """Close the journal with the counts of its own records and of the rows of each columnar file (`samples`,
        `readings`, `spans`), and sync. `sha256` vouches for the bytes of other files of the run directory, by name.
        Raises JournalFull when some found no room.
        """
        sums = {} if sha256 is None else {"sha256": dict(sha256)}
        try:
            self.record("seal", records=self.count + 1, **counts, **sums)
            if self._full:
                raise JournalFull(self._file.path)
        finally:
            self.close()

    def close(self) -> None:
        """Let go of the file without a seal: the run counts as interrupted. Safe to repeat."""
        self._file.close()
