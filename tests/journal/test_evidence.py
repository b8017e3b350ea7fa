"""The read view of a run directory."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from chaos.journal.evidence import Evidence, load_evidence, sha256_of
from chaos.journal.record import ReadingRow, Record, Sample
from chaos.journal.recorder import Recorder
from chaos.journal.samples import reading_writer, sample_writer
from chaos.testing.clock import VirtualClock, run_virtual


def sample(n, **changes):
    row = {
        "load": "chat", "request": n, "attempt": 1, "final": True, "intended_s": n / 10, "sent_s": n / 10,
        "first_token_s": n + 0.5, "end_s": n + 1.0, "outcome": "good", "why": "", "status": 200,
        "served_by": "engine-a", "degraded": "", "tokens": 5, "gaps_s": (0.25,) * (n % 4), "answer_ok": True,
        "trace_id": f"{n:032x}",
    }  # fmt: skip
    return Sample(**row | changes)


def run_directory(folder, *, seal=True):
    async def main():
        recorder = Recorder(folder, VirtualClock(), origin=1000.0)
        samples, readings = sample_writer(folder, most_rows=3), reading_writer(folder, most_rows=2)
        recorder.record("run_started", version=1, run="r", seed=7, origin=1000.0)
        for n in range(8):
            samples.append(sample(n))
            readings.append(ReadingRow(n / 2, f"engine-{'ab'[n % 2]}", f'running{{model="m{n % 4}"}}', float(n)))
        recorder.record("window", name="baseline", start=0.0, end=4.0)
        for file in (samples, readings):
            file.close()
        if seal:
            recorder.seal(samples=samples.count, readings=readings.count)
        else:
            recorder.close()

    run_virtual(main)


def kinds(evidence):
    return [problem.kind for problem in evidence.problems]


def test_a_whole_run_directory_is_read_without_problems(tmp_path):
    run_directory(tmp_path)
    evidence = load_evidence(tmp_path)
    assert evidence.problems == ()
    assert evidence.header["seed"] == 7
    assert [record.fields["name"] for record in evidence.of_kind("window")] == ["baseline"]
    assert (len(evidence.samples), len(evidence.readings)) == (8, 8)


def test_a_run_without_a_seal_was_interrupted(tmp_path):
    run_directory(tmp_path, seal=False)
    assert kinds(load_evidence(tmp_path)) == ["interrupted"]


def test_rows_taken_from_a_sealed_run_are_missed(tmp_path):
    run_directory(tmp_path)
    (tmp_path / "samples.arrows").unlink()
    data = (tmp_path / "readings.arrows").read_bytes()
    (tmp_path / "readings.arrows").write_bytes(data[: len(data) // 2])
    assert set(kinds(load_evidence(tmp_path))) == {"missing", "tampered"}


def test_a_torn_file_of_an_interrupted_run_is_torn_not_tampered(tmp_path):
    run_directory(tmp_path, seal=False)
    data = (tmp_path / "samples.arrows").read_bytes()
    (tmp_path / "samples.arrows").write_bytes(data[:-300])
    evidence = load_evidence(tmp_path)
    assert set(kinds(evidence)) == {"interrupted", "torn"}
    assert len(evidence.samples) in (3, 6)


def sealed_directory(folder):
    async def main():
        recorder = Recorder(folder, VirtualClock(), origin=1000.0)
        (folder / "plan.json").write_text("{}")
        samples, readings = sample_writer(folder), reading_writer(folder)
        recorder.record("run_started", version=1, origin=1000.0)
        samples.append(sample(0))
        samples.close()
        readings.close()
        sums = {"plan.json": sha256_of(folder / "plan.json"), "samples.arrows": samples.sha256}
        recorder.seal(samples=1, readings=0, sha256=sums | {"readings.arrows": readings.sha256})

    run_virtual(main)


def test_the_digest_of_a_writer_is_that_of_its_file(tmp_path):
    sealed_directory(tmp_path)
    assert load_evidence(tmp_path).problems == ()


@pytest.mark.parametrize("name", ["plan.json", "samples.arrows"])
def test_a_file_that_the_seal_vouches_for_and_that_was_changed_is_named(tmp_path, name):
    sealed_directory(tmp_path)
    data = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    problem = load_evidence(tmp_path).problems[0]
    assert (problem.kind, problem.what) == ("tampered", f"{name} is not what was sealed: its SHA-256 is another")


@pytest.mark.parametrize("name", ["plan.json", "samples.arrows"])
def test_a_file_that_the_seal_vouches_for_and_that_is_gone_is_missed_once(tmp_path, name):
    sealed_directory(tmp_path)
    (tmp_path / name).unlink()
    problems = load_evidence(tmp_path).problems
    assert [f"{name} is not in the run directory"] == [each.what for each in problems if each.kind == "missing"]


def test_the_environment_is_handed_on_and_a_broken_one_is_none(tmp_path):
    sealed_directory(tmp_path)
    (tmp_path / "environment.json").write_text('{"cores": 2}')
    assert load_evidence(tmp_path).environment == {"cores": 2}
    (tmp_path / "environment.json").write_text('{"cores": ')
    assert load_evidence(tmp_path).environment == {}


def test_no_journal_is_no_evidence(tmp_path):
    with pytest.raises(FileNotFoundError):
        load_evidence(tmp_path)


def test_the_watchdogs_lines_are_set_on_the_time_of_the_run(tmp_path):
    run_directory(tmp_path, seal=False)
    line = json.dumps({"t_mono": 1004.5, "fault": "outage", "step": "revert", "ok": True})
    (tmp_path / "watchdog.jsonl").write_text(line + '\n{"t_mo')
    assert load_evidence(tmp_path).watchdog == ({**json.loads(line), "t": 4.5},)


def test_what_never_happened_is_nan_and_what_is_unknown_is_minus_one():
    table = Evidence.build(
        samples=[
            sample(0, attempt=0, sent_s=float("nan"), first_token_s=None, answer_ok=None),
            sample(1, answer_ok=False),
            sample(2),
        ]
    ).samples
    assert math.isnan(table.sent_s[0])
    assert math.isnan(table.first_token_s[0])
    assert table.answer_ok.tolist() == [-1, 0, 1]


def test_texts_compare_as_whole_columns():
    table = Evidence.build(samples=[sample(n, outcome=("good", "failed")[n % 2]) for n in range(4)]).samples
    assert (table.outcome == "failed").tolist() == [False, True, False, True]


def test_a_selection_of_rows_takes_their_gaps_along():
    table = Evidence.build(samples=[sample(n) for n in range(8)]).samples
    chosen = table.where(table.request % 2 == 1)
    assert chosen.request.tolist() == [1, 3, 5, 7]
    everything = np.ones(4, dtype=bool)
    assert (len(table.pauses(np.ones(8, dtype=bool))), len(chosen.pauses(everything))) == (12, 8)
    assert len(chosen.where(chosen.request > 3).pauses(everything[:2])) == 4
    assert chosen.trace_id.to_pylist()[0] == f"{1:032x}"


def test_finals_are_one_row_per_request():
    rows = [sample(0, final=False), sample(0, attempt=2), sample(1)]
    assert Evidence.build(samples=rows).samples.finals.attempt.tolist() == [2, 1]


def test_readings_are_selected_by_name_labels_and_target():
    rows = [
        ReadingRow(1.0, "engine-a", 'running{model="m",rank="0"}', 1.0),
        ReadingRow(1.0, "engine-b", 'running{model="m",rank="1"}', 2.0),
        ReadingRow(2.0, "engine-a", "running_total", 3.0),
        ReadingRow(3.0, "engine-a", 'running{model="m",rank="0"}', 4.0),
    ]
    readings = Evidence.build(readings=rows).readings
    assert readings.select("running").value.tolist() == [1.0, 2.0, 4.0]
    assert readings.select("running", target="engine-a").t.tolist() == [1.0, 3.0]
    assert readings.select("running", {"rank": "1"}).target.tolist() == ["engine-b"]
    assert len(readings.select("running", {"rank": "1"}, "engine-a")) == 0
    assert len(readings.select("nothing")) == 0
    assert len(readings.select("nothing", target="nobody")) == 0


def test_empty_evidence_answers_every_question():
    evidence = Evidence.build()
    assert len(evidence.samples.finals) == 0
    assert len(evidence.readings.select("x", {"a": "b"}, "t")) == 0
    assert (evidence.header, evidence.first("gate"), evidence.last("gate")) == ({}, None, None)


def test_the_first_and_last_record_of_a_kind():
    records = [Record(n, float(n), "window", {"name": str(n)}) for n in range(3)]
    evidence = Evidence.build(records)
    assert (evidence.first("window").t, evidence.last("window").t) == (0.0, 2.0)
