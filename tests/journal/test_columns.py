"""Arrow columns as numpy arrays."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.journal.columns import inside, numbers

KINDS = st.sampled_from([(pa.int16(), np.int64, 0), (pa.int64(), np.int64, 0), (pa.bool_(), np.int8, -1)])


def chunked(values, kind, cut):
    """Also chunks that begin in the middle of a buffer."""
    return pa.chunked_array([pa.array(values, kind).slice(0, cut), pa.array(values, kind).slice(cut)], kind)


@given(KINDS, st.lists(st.sampled_from([0, 1, None]), max_size=40), st.integers(0, 40))
def test_a_column_is_read_whatever_its_type_chunks_and_holes(kind, values, cut):
    there, wanted, missing = kind
    cells = [None if each is None else bool(each) for each in values] if there == pa.bool_() else values
    read = numbers(chunked(cells, there, cut), wanted, missing)
    assert read.tolist() == [missing if each is None else each for each in values]


@given(st.lists(st.floats(allow_nan=False) | st.none(), max_size=20), st.integers(0, 20))
def test_a_number_that_is_not_there_is_nan(values, cut):
    read = numbers(chunked(values, pa.float64(), cut), np.float64, np.nan)
    assert [None if np.isnan(each) else each for each in read.tolist()] == values


@given(st.lists(st.tuples(st.booleans(), st.lists(st.integers(0, 9), max_size=4)), max_size=12), st.integers(0, 12))
def test_the_entries_of_chosen_lists_come_in_order(rows, cut):
    lists = pa.array([entries for _, entries in rows], pa.list_(pa.int32())).slice(cut)
    chosen = np.array([pick for pick, _ in rows[cut:]], dtype=np.bool_)
    assert inside(lists, chosen).tolist() == [each for pick, entries in rows[cut:] if pick for each in entries]


@pytest.mark.system
def test_reading_evidence_loads_no_other_library_than_it_needs(tmp_path):
    """pandas would take half of the time and a sixth of the memory that judging a million samples may."""
    script = (
        "import sys, numpy as np\nfrom pathlib import Path\nfrom chaos.journal.evidence import load_evidence\n"
        "found = load_evidence(Path(sys.argv[1]))\nsamples = found.samples\n"
        "samples.load == 'chat', samples.sent_s, samples.final, samples.answer_ok, samples.finals\n"
        "samples.pauses(samples.final), found.readings.select('vllm:num_requests_running')\n"
        "print(len(samples), 'pandas' in sys.modules)"
    )
    from tests.verdict.story import Story

    Story().write(tmp_path / "run")
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "run")], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["1000", "False"]
