"""The hash chain of the journal."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.journal.chain import GENESIS, canonical, decode, encode
from chaos.journal.reader import read_journal
from chaos.journal.record import KINDS, Record

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def journal(*records):
    lines, prev = b"", GENESIS
    for n, (kind, fields) in enumerate(records):
        line, prev = encode(Record(n, n / 4, kind, fields), prev)
        lines += line
    return lines


WHOLE = journal(
    ("run_started", {"version": 1, "run": "r", "origin": 3.5}),
    ("fault_injected", {"fault": "outage", "kind": "process_kill"}),
    ("event", {"name": "breaker_opened", "t": 3, "prev": "x", "text": "grün\n"}),
    ("seal", {"records": 4, "samples": 0, "readings": 0}),
)


def test_a_whole_journal_has_no_problems_and_all_its_records():
    read = read_journal(WHOLE)
    assert read.problems == ()
    assert [record.kind for record in read.records] == ["run_started", "fault_injected", "event", "seal"]


def test_a_field_named_like_a_column_comes_back_as_it_was():
    records = read_journal(WHOLE).records
    assert records[1].fields == {"fault": "outage", "kind": "process_kill"}
    assert records[2].fields == {"name": "breaker_opened", "t": 3, "prev": "x", "text": "grün\n"}


def test_a_line_is_one_json_object():
    line = json.loads(WHOLE.splitlines()[0])
    assert line["n"] == 0
    assert line["prev"] == GENESIS
    assert len(line["hash"]) == 64


@settings(max_examples=40)
@given(st.sampled_from(KINDS), st.dictionaries(st.text(), JSON, max_size=5), st.floats(0, 1e6))
def test_what_is_written_is_read(kind, fields, t):
    line, hash_ = encode(Record(3, t, kind, fields), GENESIS)
    record, found = decode(line[:-1], GENESIS)
    assert (record.n, record.kind, dict(record.fields), found) == (3, kind, fields, hash_)


@settings(max_examples=300)
@given(st.integers(0, len(WHOLE) - 1), st.integers(1, 255))
def test_any_flipped_byte_is_detected(place, flip):
    damaged = bytearray(WHOLE)
    damaged[place] ^= flip
    assert read_journal(bytes(damaged)).problems != ()


@given(st.integers(0, len(WHOLE) - 1))
def test_a_journal_cut_anywhere_is_readable_to_its_last_whole_line_and_never_called_tampered(length):
    read = read_journal(WHOLE[:length])
    whole_lines = WHOLE[:length].count(b"\n")
    assert len(read.records) == whole_lines
    kinds = {problem.kind for problem in read.problems}
    assert "interrupted" in kinds
    assert kinds <= {"interrupted", "torn"}
    assert ("torn" in kinds) == (not WHOLE[:length].endswith(b"\n") and length > 0)


@pytest.mark.parametrize("order", [(0, 2, 3), (0, 2, 1, 3), (1, 2, 3), (0, 1, 1, 2, 3), (0, 1, 2, 3, 3)])
def test_a_line_dropped_moved_or_repeated_is_detected_with_its_number(order):
    lines = WHOLE.splitlines(keepends=True)
    read = read_journal(b"".join(lines[n] for n in order))
    first_wrong = next((at for at, n in enumerate(order) if at != n), len(lines)) + 1
    assert read.problems[0].kind == "tampered"
    assert f"line {first_wrong}:" in read.problems[0].what


def test_a_seal_that_counts_other_records_is_detected():
    read = read_journal(journal(("run_started", {"version": 1}), ("seal", {"records": 9})))
    assert [problem.kind for problem in read.problems] == ["tampered"]


def test_a_journal_of_another_version_is_named():
    read = read_journal(journal(("run_started", {"version": 2}), ("seal", {"records": 2})))
    assert [problem.kind for problem in read.problems] == ["unknown_version"]


def test_canonical_json_does_not_depend_on_order_and_holds_no_nan():
    assert canonical({"b": float("nan"), "a": (1, float("inf"))}) == '{"a":[1,null],"b":null}'


@given(st.binary(max_size=200))
def test_noise_is_never_an_exception(noise):
    assert read_journal(noise).problems != ()
