"""Spans on disk and as columns."""

from __future__ import annotations

import pyarrow as pa
import pytest

from chaos.journal.evidence import load_evidence
from chaos.journal.record import Span
from chaos.journal.recorder import Recorder
from chaos.journal.samples import READINGS_SCHEMA, SAMPLES_SCHEMA, RowWriter
from chaos.journal.spans import SPANS_FILE, SpanTable, span_writer
from chaos.testing.clock import VirtualClock


def span(n, trace_id="t1", **changes):
    row = {
        "trace_id": trace_id, "span_id": f"s{n}", "parent_id": "", "service": "gateway", "kind": "caller",
        "name": "engine", "peer": "engine-a", "start_s": n / 10, "end_s": n / 10 + 0.05, "outcome": "ok",
        "attempt": 1, "prompt_tokens": None, "output_tokens": None,
    }  # fmt: skip
    return Span(**row | changes)


def run_directory(folder, spans, *, sealed):
    """The least that a run leaves: all files, closed, and a seal that counts `sealed` spans (None: an older seal)."""
    for name, schema in (("samples.arrows", SAMPLES_SCHEMA), ("readings.arrows", READINGS_SCHEMA)):
        RowWriter(folder / name, schema).close()
    if spans is not None:
        writer = span_writer(folder)
        for each in spans:
            writer.append(each)
        writer.close()
    recorder = Recorder(folder, VirtualClock(), 0.0)
    recorder.record_at(0.0, "run_started", version=1)
    recorder.record_at(1.0, "seal", records=2, samples=0, readings=0, **({} if sealed is None else {"spans": sealed}))
    recorder.close()


def test_spans_come_back_as_they_were_written(tmp_path):
    spans = (span(1), span(2, "t2", prompt_tokens=12, output_tokens=0, peer="engine-b"))
    run_directory(tmp_path, spans, sealed=2)
    evidence = load_evidence(tmp_path)
    assert evidence.problems == ()
    assert evidence.spans.rows() == spans
    assert evidence.spans.of_traces(["t2"]).rows() == spans[1:]


def test_strangers_open_the_file_with_pyarrow_alone(tmp_path):
    run_directory(tmp_path, [span(1)], sealed=1)
    assert pa.ipc.open_stream(tmp_path / SPANS_FILE).read_all().column_names == list(vars(span(1)))


def test_a_run_from_before_there_were_spans_has_none_and_lacks_nothing(tmp_path):
    run_directory(tmp_path, None, sealed=None)
    evidence = load_evidence(tmp_path)
    assert (len(evidence.spans), evidence.problems) == (0, ())


@pytest.mark.parametrize(("left", "wrong"), [(None, "missing"), ([], "tampered"), ([span(1)], "tampered")])
def test_spans_that_the_seal_counts_and_the_file_lacks_are_a_problem(tmp_path, left, wrong):
    run_directory(tmp_path, left, sealed=2)
    assert wrong in [problem.kind for problem in load_evidence(tmp_path).problems]


def test_a_table_without_spans_has_all_its_columns():
    assert (len(SpanTable.build()), SpanTable.build().of_traces(["t"]).rows()) == (0, ())
