"""Samples and readings on disk."""

from __future__ import annotations

import asyncio
import errno
import io
import os
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.journal.appending import JournalFull
from chaos.journal.record import ReadingRow, Sample
from chaos.journal.samples import (
    READINGS_FILE,
    READINGS_SCHEMA,
    SAMPLES_FILE,
    SAMPLES_SCHEMA,
    read_stream,
    reading_writer,
    rows_of,
    sample_writer,
    samples_table,
)
from chaos.journal.sketch import sketches
from chaos.journal.tables import SampleTable
from chaos.run.flushing import keep_flushed
from chaos.testing.clock import VirtualClock, run_virtual


def sample(n, **changes):
    row = {
        "load": "chat", "request": n, "attempt": 1, "final": True, "intended_s": n / 10, "sent_s": n / 10,
        "first_token_s": None, "end_s": n / 10 + 1, "outcome": "good", "why": "", "status": 200,
        "served_by": f"engine-{n % 3}", "degraded": "", "tokens": 5, "gaps_s": (0.5,) * (n % 4), "answer_ok": None,
        "trace_id": f"{n:032x}",
    }  # fmt: skip
    return Sample(**row | changes)


def as_row(row):
    _, buckets, counts = sketches([row.gaps_s])
    sketch = {"gap_buckets": buckets.tolist(), "gap_counts": counts.tolist()}
    return {name: value for name, value in vars(row).items() if name != "gaps_s"} | sketch


def written(folder, rows, **settings):
    writer = sample_writer(folder, **settings)
    for row in rows:
        writer.append(row)
    return writer


def read(folder):
    return read_stream((folder / SAMPLES_FILE).read_bytes(), SAMPLES_SCHEMA)


def test_what_is_written_is_read_across_batches_and_growing_dictionaries(tmp_path):
    rows = [sample(n, served_by=f"engine-{n}", answer_ok=n % 2 == 0) for n in range(25)]
    written(tmp_path, rows, most_rows=4).close()
    table, trouble = read(tmp_path)
    assert trouble is None
    assert rows_of(table) == [as_row(row) for row in rows]


def test_strangers_open_the_file_with_pyarrow_alone(tmp_path):
    written(tmp_path, [sample(n) for n in range(9)], most_rows=2).close()
    table = pa.ipc.open_stream(tmp_path / SAMPLES_FILE).read_all()
    names = " ".join(table.column_names).replace("gap_buckets gap_counts", "gaps_s").split()
    assert names == list(vars(sample(0)))
    assert table["gap_buckets"].type == pa.list_(pa.int16())
    assert table.num_rows == 9


def test_a_request_that_was_never_sent_has_no_sent_time(tmp_path):
    written(tmp_path, [sample(0, attempt=0, sent_s=float("nan"))]).close()
    assert rows_of(read(tmp_path)[0])[0]["sent_s"] is None


def test_a_run_without_rows_is_readable_before_and_after_the_close(tmp_path):
    writer = sample_writer(tmp_path)
    assert read(tmp_path) == (SAMPLES_SCHEMA.empty_table(), None)
    writer.close()
    assert read(tmp_path) == (SAMPLES_SCHEMA.empty_table(), None)


def test_rows_are_in_the_file_after_a_flush_without_any_close(tmp_path):
    writer = written(tmp_path, [sample(n) for n in range(3)])
    assert read(tmp_path)[0].num_rows == 0
    writer.flush()
    assert read(tmp_path)[0].num_rows == 3
    assert writer.count == 3
    writer.close()


@pytest.mark.parametrize("came_after_s", [0.0, 0.05, 0.149, 0.151, 7.31])
def test_samples_and_readings_are_in_their_files_within_200_ms(tmp_path, came_after_s):
    async def main():
        samples, readings, clock = sample_writer(tmp_path), reading_writer(tmp_path), VirtualClock()
        keeping = asyncio.create_task(keep_flushed(clock, [samples.flush, readings.flush]))
        await clock.sleep_until(clock.now() + came_after_s)
        samples.append(sample(0))
        readings.append(ReadingRow(1.0, "gateway", "up", 1.0))
        await clock.sleep_until(clock.now() + 0.2)
        keeping.cancel()
        stored = (tmp_path / READINGS_FILE).read_bytes()
        found = read(tmp_path)[0].num_rows, read_stream(stored, READINGS_SCHEMA)[0].num_rows
        samples.close()
        readings.close()
        return found

    assert run_virtual(main) == (1, 1)


@pytest.fixture(scope="module")
def whole():
    with tempfile.TemporaryDirectory() as folder:
        writer = written(Path(folder), [sample(n) for n in range(40)], most_rows=10)
        writer.close()
        return (Path(folder) / SAMPLES_FILE).read_bytes()


@settings(max_examples=200, deadline=None)
@given(share=st.floats(0, 1))
def test_a_file_cut_anywhere_gives_its_whole_batches(whole, share):
    table, _ = read_stream(whole[: int(share * len(whole))], SAMPLES_SCHEMA)
    assert table.num_rows in (0, 10, 20, 30, 40)
    assert rows_of(table) == [as_row(sample(n)) for n in range(table.num_rows)]


@settings(max_examples=100, deadline=None)
@given(noise=st.binary(min_size=1, max_size=300))
def test_noise_is_no_rows_and_no_exception(noise):
    table, trouble = read_stream(noise, SAMPLES_SCHEMA)
    assert table.num_rows == 0
    assert trouble


def streamed(table):
    stream = io.BytesIO()
    with pa.ipc.new_stream(stream, table.schema) as writer:
        writer.write_table(table)
    return stream.getvalue()


def test_evidence_from_before_a_column_was_added_is_read_and_knows_nothing_there():
    read, trouble = read_stream(streamed(samples_table([sample(0)]).drop_columns(["leaked"])), SAMPLES_SCHEMA)
    assert (None, [None], 1) == (trouble, read["leaked"].to_pylist(), len(read))


def test_a_column_that_a_later_version_adds_is_not_looked_at():
    table = samples_table([sample(0)]).append_column("mood", pa.array(["fine"]))
    read, trouble = read_stream(streamed(table), SAMPLES_SCHEMA)
    assert (None, SAMPLES_SCHEMA.names, 1) == (trouble, read.column_names, len(read))


def test_evidence_from_before_sketches_gives_every_pause_as_it_was():
    table = samples_table([sample(n) for n in range(4)]).drop_columns(["gap_buckets", "gap_counts", "leaked"])
    before = table.append_column("gaps_s", pa.array([[], [0.25], [0.5, 0.125], [0.25]], pa.list_(pa.float32())))
    read, trouble = read_stream(streamed(before), SAMPLES_SCHEMA)
    rows = SampleTable.from_arrow(read)
    found = rows.pauses(rows.request > 0)
    assert (None, [0.125, 0.25, 0.5], [1, 2, 1]) == (trouble, found.value.tolist(), found.count.tolist())
    assert found.low.tolist() == found.high.tolist() == found.value.tolist()
    assert len(rows.where(rows.request == 2).pauses(np.ones(1, dtype=bool))) == 2


def test_evidence_without_any_pauses_has_none():
    table = samples_table([sample(3)]).drop_columns(["gap_buckets", "gap_counts"])
    rows = SampleTable.from_arrow(read_stream(streamed(table), SAMPLES_SCHEMA)[0])
    assert len(rows.pauses(rows.final)) == 0


def test_other_columns_are_not_believed(tmp_path):
    writer = reading_writer(tmp_path)
    writer.append(ReadingRow(1.0, "gateway", "up", 1.0))
    writer.close()
    table, trouble = read_stream((tmp_path / "readings.arrows").read_bytes(), SAMPLES_SCHEMA)
    assert table.num_rows == 0
    assert "columns" in trouble


def test_a_full_disk_is_told_once_keeps_earlier_batches_and_catches_up(tmp_path):
    room = {"left": 10**6}

    def write(fd, data):
        if len(data) > room["left"]:
            raise OSError(errno.ENOSPC, "No space left on device")
        return os.write(fd, data)

    writer = written(tmp_path, [sample(n) for n in range(3)], write=write)
    writer.flush()
    room["left"] = 0
    writer.append(sample(3))
    with pytest.raises(JournalFull):
        writer.flush()
    writer.append(sample(4))
    writer.flush()
    assert read(tmp_path)[0].num_rows == 3
    room["left"] = 10**6
    writer.close()
    table, trouble = read(tmp_path)
    assert (table.num_rows, trouble) == (5, None)


def test_a_close_that_finds_no_room_says_so_however_often_it_was_said_before(tmp_path):
    def write(_fd, _data):
        raise OSError(errno.ENOSPC, "No space left on device")

    writer = written(tmp_path, [sample(0)], write=write)
    with pytest.raises(JournalFull):
        writer.flush()
    with pytest.raises(JournalFull):
        writer.close()
