"""Samples and readings on disk: Arrow IPC *streams*, appended batch by batch, readable to the last whole batch after a
kill.

The stream format needs no footer, so there is nothing to lose by dying. Texts are dictionary encoded; the dictionary
of a column only grows and is sent again when it has. pandas, polars and DuckDB open the files without us
(docs/evidence.md). The pauses of a row are a sketch in two columns of one length, `gap_buckets` and `gap_counts`
(chaos.journal.sketch). Back to seconds in DuckDB:

    SELECT load, request, CASE bucket WHEN 0 THEN 0 WHEN 32767 THEN 'inf'::DOUBLE
           ELSE 1e-6 * 0.99 * pow(1.01 / 0.99, bucket) END AS gap_s, pauses
    FROM (SELECT load, request, unnest(gap_buckets) AS bucket, unnest(gap_counts) AS pauses FROM samples)
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, Generic, TypeVar

import pyarrow as pa

from chaos.journal.appending import AppendFile, JournalFull, Write
from chaos.journal.record import ReadingRow, Sample, Span
from chaos.journal.sketch import sketches

_WORD = pa.dictionary(pa.int32(), pa.string())

SAMPLES_FILE = "samples.arrows"
READINGS_FILE = "readings.arrows"

SAMPLES_SCHEMA = pa.schema(
    [
        pa.field("load", _WORD),
        pa.field("request", pa.int64()),
        pa.field("attempt", pa.int16()),  # from 1; 0: never sent
        pa.field("final", pa.bool_()),
        pa.field("intended_s", pa.float64()),
        pa.field("sent_s", pa.float64()),  # null: never sent
        pa.field("first_token_s", pa.float64()),  # null: never came
        pa.field("end_s", pa.float64()),
        pa.field("outcome", _WORD),
        pa.field("why", _WORD),
        pa.field("status", pa.int16()),
        pa.field("served_by", _WORD),
        pa.field("degraded", _WORD),
        pa.field("tokens", pa.int32()),
        pa.field("gap_buckets", pa.list_(pa.int16())),  # pauses between tokens: a sketch, see chaos.journal.sketch
        pa.field("gap_counts", pa.list_(pa.int32())),
        pa.field("answer_ok", pa.bool_()),  # null: the prompt has no known answer
        pa.field("trace_id", pa.string()),
        pa.field("leaked", pa.string()),  # null: requests carry no markers
    ],
    metadata={"brownout": "samples 2"},
)
READINGS_SCHEMA = pa.schema(
    [
        pa.field("t", pa.float64()),
        pa.field("target", _WORD),
        pa.field("series", _WORD),
        pa.field("value", pa.float64()),
    ],
    metadata={"brownout": "readings 1"},
)

_Row = TypeVar("_Row", Sample, ReadingRow, Span)


class Dictionaries:
    """The distinct texts of each column so far, in order of first appearance."""

    def __init__(self) -> None:
        """Nothing seen yet."""
        self._codes: dict[str, dict[str, int]] = {}

    def encode(self, column: str, texts: Sequence[str]) -> pa.DictionaryArray:
        """Codes for `texts` into the dictionary of the column, which grows as needed."""
        known = self._codes.setdefault(column, {})
        for text in dict.fromkeys(texts):
            known.setdefault(text, len(known))
        codes = pa.array(list(map(known.__getitem__, texts)), pa.int32())
        return pa.DictionaryArray.from_arrays(codes, pa.array(known, pa.string()))


def _gaps(pauses_s: Sequence[Sequence[float]]) -> dict[str, pa.Array]:
    """Both columns of the sketches."""
    ends, buckets, counts = sketches(pauses_s)
    columns = {"gap_buckets": pa.array(buckets, pa.int16()), "gap_counts": pa.array(counts, pa.int32())}
    return {name: pa.ListArray.from_arrays(pa.array(ends, pa.int32()), each) for name, each in columns.items()}


def batch_of(rows: Sequence[_Row], schema: pa.Schema, words: Dictionaries) -> pa.RecordBatch:
    """All attributes of all rows are taken in one go: this is most of what evidence costs while a run goes on."""
    names = list(dict.fromkeys(_ATTRIBUTES.get(name, name) for name in schema.names))
    taken = zip(*map(attrgetter(*names), rows), strict=True) if rows else [()] * len(names)
    by_name = dict(zip(names, taken, strict=True))
    gaps = _gaps(by_name["gaps_s"]) if "gaps_s" in by_name else {}
    columns = []
    for field in schema:
        if field.name in gaps:
            columns.append(gaps[field.name])
        elif field.type == _WORD:
            columns.append(words.encode(field.name, by_name[field.name]))
        else:
            columns.append(pa.array(by_name[field.name], field.type, from_pandas=True))  # nan is null
    return pa.RecordBatch.from_arrays(columns, schema=schema)


_ATTRIBUTES = {"gap_buckets": "gaps_s", "gap_counts": "gaps_s"}
"""Columns that are made of an attribute of another name."""


def samples_table(samples: Iterable[Sample]) -> pa.Table:
    """Samples as an Arrow table, for tests and exports."""
    return pa.Table.from_batches([batch_of(list(samples), SAMPLES_SCHEMA, Dictionaries())])


def readings_table(readings: Iterable[ReadingRow]) -> pa.Table:
    """Readings as an Arrow table, for tests and exports."""
    return pa.Table.from_batches([batch_of(list(readings), READINGS_SCHEMA, Dictionaries())])


class RowWriter(Generic[_Row]):
    """Appends rows in batches. A batch goes out when it has `most_rows` rows or `flush` is called (see `keep_flushed`).

    Raises JournalFull once; rows then stay in memory and are tried again at every later flush.
    """

    def __init__(self, path: Path, schema: pa.Schema, *, most_rows: int = 2000, write: Write = os.write) -> None:
        """Create the file. Raises FileExistsError, OSError."""
        self.count = 0
        self._sum = hashlib.sha256()
        self._schema = schema
        self._most_rows = most_rows
        self._rows: list[_Row] = []
        self._words = Dictionaries()
        self._file = AppendFile(path, write)
        self._bytes = io.BytesIO()
        self._stream = pa.ipc.new_stream(self._bytes, schema)
        batch_of(self._rows, schema, Dictionaries())  # what pyarrow loads with its first array it loads before the run
        self._full = False

    @property
    def sha256(self) -> str:
        """Of all that is in the file, in hex."""
        return self._sum.hexdigest()

    def append(self, row: _Row) -> None:
        """Take one row."""
        self.count += 1
        self._rows.append(row)
        if len(self._rows) >= self._most_rows and not self._full:
            self.flush()

    def flush(self) -> None:
        """Hand everything taken so far to the operating system. Raises JournalFull the first time there is no room."""
        if self._rows:
            self._stream.write_batch(batch_of(self._rows, self._schema, self._words))
            self._rows = []
        self._push()

    def close(self) -> None:
        """Flush, write the end mark, sync. Safe to repeat. Raises JournalFull when not all of it found room."""
        try:
            self.flush()
            self._stream.close()
            self._push()
            if self._full:
                raise JournalFull(self._file.path)
        finally:
            self._file.close()

    def _push(self) -> None:
        """Write out what the stream encoder produced, as one piece."""
        piece = self._bytes.getvalue()
        if not piece:
            return
        try:
            self._file.append(piece)
        except JournalFull:
            first, self._full = not self._full, True
            if first:
                raise
            return
        self._full = False
        self._sum.update(piece)
        self._bytes.seek(0)
        self._bytes.truncate()


def sample_writer(folder: Path, **settings: Any) -> RowWriter[Sample]:
    """The writer of `samples.arrows` in a run directory."""
    return RowWriter(folder / SAMPLES_FILE, SAMPLES_SCHEMA, **settings)


def reading_writer(folder: Path, **settings: Any) -> RowWriter[ReadingRow]:
    """The writer of `readings.arrows` in a run directory."""
    return RowWriter(folder / READINGS_FILE, READINGS_SCHEMA, **settings)


def no_rows(schema: pa.Schema) -> pa.Table:
    """An empty table."""
    return pa.Table.from_batches([], schema=schema)


def mapped(path: Path) -> pa.Buffer:
    """The bytes of a file, brought into memory only where they are looked at. Raises OSError."""
    return pa.memory_map(str(path)).read_buffer() if path.stat().st_size else pa.py_buffer(b"")


def read_stream(data: bytes | pa.Buffer, schema: pa.Schema, *, believed: bool = False) -> tuple[pa.Table, str | None]:
    """All whole batches, and what was wrong with the end (None: nothing). Never raises for damaged bytes.

    Without `believed` every value of a batch is checked before anybody looks at it.
    """
    if not len(data):  # the schema goes out with the first batch
        return no_rows(schema), None
    try:
        reader = pa.ipc.open_stream(pa.py_buffer(data) if isinstance(data, bytes) else data)
        found = _columns(reader.schema, schema)
    except (pa.ArrowException, OSError, ValueError) as error:
        return no_rows(schema), f"no readable stream: {error}"
    batches, trouble = _batches(reader, found, believed=believed)
    return _with_all_columns(pa.Table.from_batches(batches, schema=pa.schema(found)), schema), trouble


def _batches(reader: Any, columns: list[pa.Field], *, believed: bool) -> tuple[list[pa.RecordBatch], str | None]:
    """The whole batches with these columns, and what ended them too early."""
    batches: list[pa.RecordBatch] = []
    names = [column.name for column in columns]
    while True:
        try:
            batch = reader.read_next_batch()
            if not believed:
                batch.validate(full=True)
        except StopIteration:
            return batches, None
        except (pa.ArrowException, OSError, ValueError) as error:
            rows = sum(batch.num_rows for batch in batches)
            return batches, f"ends in the middle of a batch after {rows} rows: {error}"
        batches.append(batch.select(names))


_ADDED_LATER = frozenset({"leaked", "gap_buckets", "gap_counts"})
"""Columns that older evidence has not; nothing is known there."""

GAPS_BEFORE = pa.field("gaps_s", pa.list_(pa.float32()))
"""How older evidence has the pauses of a row: every one."""


def _columns(there: pa.Schema, wanted: pa.Schema) -> list[pa.Field]:
    """The fields of a file that we read; what a later version added is not looked at. Raises ValueError."""
    there_by_name = {field.name: field for field in there}
    before = (GAPS_BEFORE,) if "gap_buckets" in wanted.names else ()
    for field in wanted:
        found = there_by_name.get(field.name)
        if found is None and field.name in _ADDED_LATER:
            continue
        if found is None or found.type != field.type:
            raise ValueError(f"columns differ from what this version writes: {field.name}")
    return [there_by_name[field.name] for field in (*wanted, *before) if there_by_name.get(field.name) is not None]


def _with_all_columns(table: pa.Table, schema: pa.Schema) -> pa.Table:
    for field in schema:
        if field.name not in table.column_names:
            table = table.append_column(field, pa.nulls(len(table), field.type))
    return table


def rows_of(table: pa.Table) -> list[Mapping[str, Any]]:
    """Rows as mappings, for small tables."""
    return table.to_pylist()  # type: ignore[no-any-return]  # pyarrow has no types
