"""Evidence: the read view of a run directory, the only thing that verdicts and reports ever see.

Journal records as values, samples and readings as numpy columns, and a list of everything that is wrong with them.
What a dead harness left undone is completed from `watchdog.jsonl`, where the watchdog wrote what it reverted.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from chaos.journal.reader import Problem, read_journal
from chaos.journal.record import ReadingRow, Record, Sample, Span
from chaos.journal.recorder import JOURNAL_FILE
from chaos.journal.samples import (
    READINGS_FILE,
    READINGS_SCHEMA,
    SAMPLES_FILE,
    SAMPLES_SCHEMA,
    mapped,
    no_rows,
    read_stream,
)
from chaos.journal.spans import SPANS_FILE, SPANS_SCHEMA, SpanTable
from chaos.journal.tables import ReadingTable, SampleTable

WATCHDOG_FILE = "watchdog.jsonl"
ENVIRONMENT_FILE = "environment.json"


@dataclass(frozen=True)
class Evidence:
    """Everything a run left behind. Times are seconds since the run began."""

    records: tuple[Record, ...]
    samples: SampleTable
    readings: ReadingTable
    problems: tuple[Problem, ...] = ()
    watchdog: tuple[Mapping[str, Any], ...] = field(
        default=()
    )  # lines of watchdog.jsonl, with `t` added where the origin is known
    environment: Mapping[str, Any] = field(default_factory=dict)  # environment.json; empty where it cannot be read
    spans: SpanTable = field(default_factory=SpanTable.build)  # empty where the stack keeps none, or the run is older

    @classmethod
    def build(
        cls,
        records: Iterable[Record] = (),
        samples: Iterable[Sample] = (),
        readings: Iterable[ReadingRow] = (),
        problems: Iterable[Problem] = (),
        spans: Iterable[Span] = (),
    ) -> Self:
        """Evidence from values, for tests."""
        return cls(
            tuple(records),
            SampleTable.build(samples),
            ReadingTable.build(readings),
            tuple(problems),
            spans=SpanTable.build(spans),
        )

    @property
    def header(self) -> Mapping[str, Any]:
        """The fields of `run_started`; empty when the run did not get that far."""
        first = self.first("run_started")
        return first.fields if first else {}

    def of_kind(self, *kinds: str) -> tuple[Record, ...]:
        """Records of these kinds, in order."""
        return tuple(record for record in self.records if record.kind in kinds)

    def first(self, kind: str) -> Record | None:
        """The first record of a kind."""
        return next((record for record in self.records if record.kind == kind), None)

    def last(self, kind: str) -> Record | None:
        """The last record of a kind."""
        return next((record for record in reversed(self.records) if record.kind == kind), None)


def load_evidence(run_dir: Path) -> Evidence:
    """Read a run directory, also one whose harness was killed. Raises FileNotFoundError when it has no journal."""
    journal = read_journal((run_dir / JOURNAL_FILE).read_bytes())
    problems = list(journal.problems)
    seal = journal.records[-1].fields if journal.records and journal.records[-1].kind == "seal" else {}
    believed = _as_sealed(run_dir, seal.get("sha256", {}), problems)
    samples = _columns(run_dir / SAMPLES_FILE, SAMPLES_SCHEMA, seal.get("samples"), believed, problems)
    readings = _columns(run_dir / READINGS_FILE, READINGS_SCHEMA, seal.get("readings"), believed, problems)
    spans = _spans(run_dir / SPANS_FILE, seal.get("spans"), believed, problems)
    return Evidence(
        records=journal.records,
        samples=SampleTable.from_arrow(samples),
        readings=ReadingTable.from_arrow(readings),
        problems=tuple(problems),
        watchdog=_watchdog(run_dir / WATCHDOG_FILE, journal.records),
        environment=_environment(run_dir / ENVIRONMENT_FILE),
        spans=SpanTable.from_arrow(spans),
    )


def _spans(path: Path, sealed: int | None, believed: frozenset[str], problems: list[Problem]) -> pa.Table:
    """Runs from before there were spans have no such file, and their seals no count of it."""
    if sealed is None and not path.exists():
        return no_rows(SPANS_SCHEMA)
    return _columns(path, SPANS_SCHEMA, sealed, believed, problems)


def _as_sealed(run_dir: Path, sums: Mapping[str, str], problems: list[Problem]) -> frozenset[str]:
    """The files whose bytes are those that the seal vouches for; adds those that are not to `problems`. Seals of before
    vouch for no file.
    """
    intact = set()
    for name, promised in sums.items():
        path = run_dir / Path(name).name
        if not path.exists():
            if name not in (SAMPLES_FILE, READINGS_FILE, SPANS_FILE):  # those are missed by who reads them
                problems.append(Problem("missing", f"{name} is not in the run directory"))
        elif sha256_of(path) == promised:
            intact.add(name)
        else:
            problems.append(Problem("tampered", f"{name} is not what was sealed: its SHA-256 is another"))
    return frozenset(intact)


def sha256_of(path: Path) -> str:
    """The digest of a file, in hex. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _columns(
    path: Path, schema: pa.Schema, sealed: int | None, believed: frozenset[str], problems: list[Problem]
) -> pa.Table:
    """One columnar file; adds what is wrong with it to `problems`. `sealed` is the count of rows that the seal
    promises; what is not `believed` is checked value by value.
    """
    if not path.exists():
        problems.append(Problem("missing", f"{path.name} is not in the run directory"))
        return no_rows(schema)
    table, trouble = read_stream(mapped(path), schema, believed=path.name in believed)
    if trouble:
        problems.append(Problem("torn" if sealed is None else "tampered", f"{path.name}: {trouble}"))
    if sealed is not None and table.num_rows != sealed:
        problems.append(Problem("tampered", f"{path.name} has {table.num_rows} rows, the seal says {sealed}"))
    return table


def _environment(path: Path) -> Mapping[str, Any]:
    """Nothing rests on it but a sentence about the machine, so one that is broken is as none."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _watchdog(path: Path, records: tuple[Record, ...]) -> tuple[Mapping[str, Any], ...]:
    """What the watchdog did; a line that was cut off is left out."""
    if not path.exists():
        return ()
    origin = records[0].fields.get("origin") if records else None
    lines = []
    for text in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if not isinstance(line, dict):
            continue
        known = isinstance(origin, int | float) and isinstance(line.get("t_mono"), int | float)
        lines.append({**line, "t": line["t_mono"] - origin} if known else line)
    return tuple(lines)
