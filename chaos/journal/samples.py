"""Samples and readings on disk: Arrow IPC *streams*, appended batch by batch, readable to the last whole batch after a
kill.

The stream format needs no footer, so there is nothing to lose by dying. Texts are dictionary encoded; the dictionary
of a column only grows and is sent again when it has. Other programs open the files without us:

    pyarrow.ipc.open_stream("samples.arrows").read_pandas() polars.read_ipc_stream("samples.arrows") duckdb: t =
    pyarrow.ipc.open_stream("samples.arrows").read_all(); duckdb.sql("select outcome, count(*) from t group by 1")
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, Generic, TypeVar

import pyarrow as pa

from chaos.journal.appending import AppendFile, JournalFull, Write
from chaos.journal.record import ReadingRow, Sample, Span

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
        pa.field("gaps_s", pa.list_(pa.float32())),
        pa.field("answer_ok", pa.bool_()),  # null: the prompt has no known answer
        pa.field("trace_id", pa.string()),
        pa.field("leaked", pa.string()),  # null: requests carry no markers
    ],
    metadata={"brownout": "samples 1"},
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

    def encode(self, column: str, texts: Iterable[str]) -> pa.DictionaryArray:
        """Codes for `texts` into the dictionary of the column, which grows as needed."""
        known = self._codes.setdefault(column, {})
        codes = [known.setdefault(text, len(known)) for text in texts]
        return pa.DictionaryArray.from_arrays(pa.array(codes, pa.int32()), pa.array(known, pa.string()))


def _plain(rows: list[_Row], name: str, kind: pa.DataType) -> pa.Array:
    return pa.array([getattr(row, name) for row in rows], kind, from_pandas=True)  # nan is null


def _gaps(rows: list[Sample]) -> pa.Array:
    offsets = [0]
    for row in rows:
        offsets.append(offsets[-1] + len(row.gaps_s))
    values = pa.array(chain.from_iterable(row.gaps_s for row in rows), pa.float32())
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values)


def batch_of(rows: list[_Row], schema: pa.Schema, words: Dictionaries) -> pa.RecordBatch:
    columns = []
    for field in schema:
        if field.type == _WORD:
            columns.append(words.encode(field.name, [getattr(row, field.name) for row in rows]))
        elif field.name == "gaps_s":
            columns.append(_gaps([row for row in rows if isinstance(row, Sample)]))
        else:
            columns.append(_plain(rows, field.name, field.type))
    return pa.RecordBatch.from_arrays(columns, schema=schema)


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
        self._schema = schema
        self._most_rows = most_rows
        self._rows: list[_Row] = []
        self._words = Dictionaries()
        self._file = AppendFile(path, write)
        self._bytes = io.BytesIO()
        self._stream = pa.ipc.new_stream(self._bytes, schema)
        self._full = False

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
        self._bytes.seek(0)
        self._bytes.truncate()


def sample_writer(folder: Path, **settings: Any) -> RowWriter[Sample]:
    """The writer of `samples.arrows` in a run directory."""
    return RowWriter(folder / SAMPLES_FILE, SAMPLES_SCHEMA, **settings)


def reading_writer(folder: Path, **settings: Any) -> RowWriter[ReadingRow]:
    """The writer of `readings.arrows` in a run directory."""
    return RowWriter(folder / READINGS_FILE, READINGS_SCHEMA, **settings)


def read_stream(data: bytes | memoryview, schema: pa.Schema) -> tuple[pa.Table, str | None]:
    """All whole batches, and what was wrong with the end (None: nothing). Never raises for damaged bytes."""
    batches: list[pa.RecordBatch] = []
    if not data:  # the schema goes out with the first batch
        return schema.empty_table(), None
    try:
        reader = pa.ipc.open_stream(pa.py_buffer(data))
    except (pa.ArrowException, OSError) as error:
        return schema.empty_table(), f"no readable stream: {error}"
    if not any(reader.schema.equals(known) for known in (schema, _before(schema))):
        return schema.empty_table(), "columns differ from what this version writes"
    trouble: str | None = None
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            break
        except (pa.ArrowException, OSError) as error:
            trouble = f"ends in the middle of a batch after {sum(b.num_rows for b in batches)} rows: {error}"
            break
        batches.append(batch)
    return _with_all_columns(pa.Table.from_batches(batches, schema=reader.schema), schema), trouble


_ADDED_LATER = frozenset({"leaked"})
"""Columns that older evidence has not; nothing is known there."""


def _before(schema: pa.Schema) -> pa.Schema:
    """The columns as they were before some were added."""
    return pa.schema([field for field in schema if field.name not in _ADDED_LATER], metadata=schema.metadata)


def _with_all_columns(table: pa.Table, schema: pa.Schema) -> pa.Table:
    for field in schema:
        if field.name not in table.column_names:
            table = table.append_column(field, pa.nulls(len(table), field.type))
    return table


def rows_of(table: pa.Table) -> list[Mapping[str, Any]]:
    """Rows as mappings, for small tables."""
    return table.to_pylist()  # type: ignore[no-any-return]  # pyarrow has no types
