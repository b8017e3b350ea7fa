"""The writer of the journal."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys

import pytest

from chaos.journal.appending import JournalFull
from chaos.journal.reader import read_journal
from chaos.journal.recorder import JOURNAL_FILE, Recorder


class FixedClock:
    def __init__(self, now=100.0):
        self.time = now

    def now(self):
        return self.time


class Disk:
    """An os.write that has room for so many bytes."""

    def __init__(self, room):
        self.room = room

    def write(self, fd, data):
        if self.room <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = os.write(fd, data[: self.room])
        self.room -= written
        return written


def read(folder):
    return read_journal((folder / JOURNAL_FILE).read_bytes())


def test_a_record_is_in_the_file_when_the_call_returns(tmp_path):
    clock = FixedClock()
    recorder = Recorder(tmp_path, clock, origin=98.5)
    recorder.record("note", text="hello")
    found = read(tmp_path).records[0]
    assert (found.n, found.t, found.kind, found.fields) == (0, 1.5, "note", {"text": "hello"})
    recorder.close()


def test_a_sealed_journal_is_whole(tmp_path):
    recorder = Recorder(tmp_path, FixedClock(), origin=100.0)
    recorder.record("run_started", version=1)
    recorder.record_at(0.25, "event", name="breaker_opened", kind="x")
    recorder.seal(samples=3, readings=4)
    journal = read(tmp_path)
    assert journal.problems == ()
    assert journal.records[1].t == 0.25
    assert journal.records[2].fields == {"records": 3, "samples": 3, "readings": 4}


def test_secrets_never_reach_the_file(tmp_path):
    recorder = Recorder(tmp_path, FixedClock(), origin=100.0, secrets=["tiger-lily"])
    recorder.record("note", text="the word is tiger-lily", api_key="k-123")
    recorder.close()
    data = (tmp_path / JOURNAL_FILE).read_text()
    assert "tiger-lily" not in data
    assert "k-123" not in data


def test_a_second_writer_is_refused(tmp_path):
    recorder = Recorder(tmp_path, FixedClock(), origin=100.0)
    with pytest.raises(FileExistsError):
        Recorder(tmp_path, FixedClock(), origin=100.0)
    recorder.close()


def test_an_unknown_kind_is_refused(tmp_path):
    recorder = Recorder(tmp_path, FixedClock(), origin=100.0)
    with pytest.raises(ValueError, match="sneeze"):
        recorder.record("sneeze")
    recorder.close()


@pytest.mark.parametrize("room", [0, 1, 250, 400, 420])
def test_a_full_disk_is_told_once_and_loses_no_earlier_line(tmp_path, room):
    disk = Disk(room)
    recorder = Recorder(tmp_path, FixedClock(), origin=100.0, write=disk.write)
    told, before = [], 0
    for n in range(6):
        try:
            recorder.record("note", text=f"line {n}")
            before += not told
        except JournalFull as full:
            told.append(full)
    assert [full.errno for full in told] == [errno.ENOSPC]
    assert str(tmp_path / JOURNAL_FILE) in str(told[0])
    assert recorder.full
    journal = read(tmp_path)
    assert [record.fields["text"] for record in journal.records] == [f"line {n}" for n in range(before)]
    assert {problem.kind for problem in journal.problems} == {"interrupted"}
    recorder.close()


def test_when_there_is_room_again_the_waiting_lines_follow(tmp_path):
    disk = Disk(300)
    recorder = Recorder(tmp_path, FixedClock(), origin=100.0, write=disk.write)
    recorder.record("run_started", version=1)
    with pytest.raises(JournalFull):
        recorder.record("note", text="waits")
    disk.room = 10_000
    recorder.record("note", text="follows")
    recorder.seal(samples=0, readings=0)
    assert read(tmp_path).problems == ()
    assert [record.fields.get("text") for record in read(tmp_path).records] == [None, "waits", "follows", None]


def test_a_seal_that_finds_no_room_says_so_however_often_it_was_said_before(tmp_path):
    disk = Disk(300)
    recorder = Recorder(tmp_path, FixedClock(), origin=100.0, write=disk.write)
    recorder.record("run_started", version=1)
    with pytest.raises(JournalFull):
        recorder.record("note", text="waits")
    with pytest.raises(JournalFull):
        recorder.seal(samples=0, readings=0)
    assert [problem.kind for problem in read(tmp_path).problems] == ["interrupted"]


def test_another_write_error_is_told_as_it_is(tmp_path):
    def broken(_fd, _data):
        raise OSError(errno.EIO, "Input/output error")

    recorder = Recorder(tmp_path, FixedClock(), origin=100.0, write=broken)
    with pytest.raises(OSError, match="Input/output error"):
        recorder.record("note", text="x")
    recorder.close()


WRITER = """
import sys, pathlib
from chaos.adapters.clock import MonotonicClock
from chaos.journal.recorder import Recorder
recorder = Recorder(pathlib.Path(sys.argv[1]), MonotonicClock(), origin=0.0)
n = 0
while True:
    recorder.record("note", text="x" * 200, count=n)
    n += 1
    if n == 50:
        print("fifty", flush=True)
"""


@pytest.mark.system
def test_a_killed_writer_leaves_every_record_it_had_written(tmp_path):
    with subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE) as writer:
        writer.stdout.readline()
        writer.send_signal(signal.SIGKILL)
    journal = read(tmp_path)
    assert len(journal.records) >= 50
    assert [record.fields["count"] for record in journal.records] == list(range(len(journal.records)))
    assert {problem.kind for problem in journal.problems} <= {"interrupted", "torn"}
