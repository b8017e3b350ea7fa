"""Somebody changes sealed evidence: whatever it is and wherever, a judgement says so."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from drill import Drill
from matrix import Figure, Found, Matrix, Row, Trial

from chaos.journal.evidence import load_evidence, sha256_of
from chaos.journal.recorder import Recorder
from chaos.journal.samples import READINGS_FILE, SAMPLES_FILE, reading_writer, sample_writer
from chaos.verdict.judge import judge
from tests.verdict.story import EXPERIMENT, LOAD_END, Story, experiment

EACH, TRIALS = 50, 20
JOURNAL, INPUT = "journal.jsonl", "experiment.yaml"


def sealed(run_dir: Path) -> None:
    """A run of the story, sealed as a real one is. Fewer users, so that a thousand changes are judged quickly."""
    run_dir.mkdir(parents=True)
    (run_dir / INPUT).write_text(EXPERIMENT, encoding="utf-8")
    story = Story(rate=4.0)
    recorder = Recorder(run_dir, clock=None, origin=0.0)  # type: ignore[arg-type]  # record_at needs no clock
    for t, kind, fields in story.records():
        recorder.record_at(t, kind, **fields)
    samples, readings = sample_writer(run_dir), reading_writer(run_dir)
    for sample in story.samples():
        samples.append(sample)
    for reading in story.readings():
        readings.append(reading)
    samples.close()
    readings.close()
    counts = {"records": recorder.count + 1, "samples": samples.count, "readings": readings.count}
    sums = {name: sha256_of(run_dir / name) for name in (INPUT, SAMPLES_FILE, READINGS_FILE)}
    recorder.record_at(LOAD_END + 3, "seal", **counts, sha256=sums)
    recorder.close()


def _flip(data: bytes, dice: random.Random) -> bytes:
    place = dice.randrange(len(data))
    return data[:place] + bytes([data[place] ^ dice.randrange(1, 256)]) + data[place + 1 :]


def _drop_line(data: bytes, dice: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    del lines[dice.randrange(len(lines))]
    return b"".join(lines)


def _swap_lines(data: bytes, dice: random.Random) -> bytes:
    lines = data.splitlines(keepends=True)
    one, other = dice.sample(range(len(lines)), 2)
    lines[one], lines[other] = lines[other], lines[one]
    return b"".join(lines)


def _truncate(data: bytes, dice: random.Random) -> bytes:
    return data[: dice.randrange(len(data))]


def _append(data: bytes, dice: random.Random) -> bytes:
    return data + dice.choice([b"\n", b"{}\n", data.splitlines(keepends=True)[-1], dice.randbytes(20)])


Change = Callable[[bytes, random.Random], bytes]
CHANGES: Mapping[str, tuple[str, Change]] = {
    "flip a byte of the journal": (JOURNAL, _flip),
    "drop a line": (JOURNAL, _drop_line),
    "swap two lines": (JOURNAL, _swap_lines),
    "truncate the journal": (JOURNAL, _truncate),
    "append to the journal": (JOURNAL, _append),
    "flip a byte of the samples": (SAMPLES_FILE, _flip),
    "truncate the samples": (SAMPLES_FILE, _truncate),
    "append to the samples": (SAMPLES_FILE, _append),
    "flip a byte of the readings": (READINGS_FILE, _flip),
    "flip a byte of the experiment": (INPUT, _flip),
}


def tampered(run_dir: Path, how: str, dice: random.Random) -> list[str]:
    """What is wrong with a run directory after one change, which is taken back; an empty list: nobody noticed."""
    name, change = CHANGES[how]
    path = run_dir / name
    before = path.read_bytes()
    shutil.copy(path, path.with_name("whole"))
    path.unlink()  # a mapped file must not change under its reader
    path.write_bytes(change(before, dice))
    try:
        evidence = load_evidence(run_dir)
        verdict = judge(experiment(), evidence)
        return [str(problem) for problem in evidence.problems] if verdict.verdict == "inconclusive" else []
    finally:
        path.unlink()
        path.with_name("whole").rename(path)


def carried_out(trial: Trial, drill: Drill) -> Found:
    """Fifty changes of one kind, each to a whole run directory."""
    del drill
    how, dice = list(CHANGES)[trial.seed % len(CHANGES)], random.Random(trial.seed)
    with tempfile.TemporaryDirectory() as folder:
        run_dir = Path(folder) / "run"
        sealed(run_dir)
        assert load_evidence(run_dir).problems == ()
        found = [tampered(run_dir, how, dice) for _ in range(EACH)]
    missed = sum(not each for each in found)
    return Found(f"{missed} of {EACH} went unnoticed: {how}" if missed else None, {"changes": EACH, "missed": missed})


def _figures(rows: Sequence[Row]) -> list[Figure]:
    changes, missed = (float(sum(row.get(fact, EACH) for row in rows)) for fact in ("changes", "missed"))
    return [Figure("changes", changes, unit=""), Figure("unnoticed", missed, unit="", below=1.0)]


TAMPER = Matrix(
    "tamper",
    "any change to sealed evidence is noticed",
    lambda: [Trial(f"{list(CHANGES)[n % len(CHANGES)]}/{n // len(CHANGES)}", n) for n in range(TRIALS)],
    carried_out,
    _figures,
    stack=False,
)
