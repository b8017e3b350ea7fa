"""Read a journal back, believing nothing: every line is checked against its hash and its place in the chain.

What is wrong becomes a `Problem`, never an exception, and everything before it is still handed out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from chaos.journal.chain import GENESIS, decode
from chaos.journal.record import JOURNAL_VERSION, Record

ProblemKind = Literal["torn", "tampered", "interrupted", "unknown_version", "missing"]


@dataclass(frozen=True)
class Problem:
    """Something wrong with the evidence.

    torn: a file ends in the middle of a record, as after a kill. tampered: bytes, lines or counts are not what was
    written. interrupted: there is no seal, so the run did not come to its end. unknown_version: written by another
    version. missing: a file of the run directory is not there.
    """

    kind: ProblemKind
    what: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.what}"


@dataclass(frozen=True)
class JournalRead:
    """What a journal file holds up to the first line that cannot be believed."""

    records: tuple[Record, ...]
    problems: tuple[Problem, ...]


def read_journal(data: bytes) -> JournalRead:
    """Records and problems of a journal file. Pure; never raises for damaged bytes."""
    *lines, tail = data.split(b"\n")
    records, problems = _follow(lines)
    if tail and not problems:
        problems.append(Problem("torn", f"the journal's last line ({len(lines) + 1}) was cut off; it is left out"))
    version = records[0].fields.get("version") if records and records[0].kind == "run_started" else None
    if version is not None and version != JOURNAL_VERSION:
        problems.append(
            Problem(
                "unknown_version",
                f"journal version {version!r}, this program reads {JOURNAL_VERSION}: judge it with the version of"
                " Brownout that wrote it",
            )
        )
    if not records or records[-1].kind != "seal":
        problems.append(Problem("interrupted", "the journal has no seal: the run did not come to its end"))
    elif records[-1].fields.get("records") != len(records):
        problems.append(Problem("tampered", "the seal counts other records than the journal holds"))
    return JournalRead(tuple(records), tuple(problems))


def _follow(lines: list[bytes]) -> tuple[list[Record], list[Problem]]:
    """Walk the chain until it breaks."""
    records: list[Record] = []
    prev = GENESIS
    for number, line in enumerate(lines, start=1):
        wrong = "it stands after the seal" if records and records[-1].kind == "seal" else None
        try:
            record, prev = decode(line, prev)
        except ValueError as error:
            wrong = wrong or str(error)
        else:
            wrong = wrong or (f"it says it is record {record.n}" if record.n != len(records) else None)
        if wrong:
            return records, [Problem("tampered", f"journal line {number}: {wrong}")]
        records.append(record)
    return records, []
