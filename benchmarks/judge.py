"""How long a judgement takes and how much memory: a large run, judged from its files in a process of its own.

    python benchmarks/judge.py [--samples 1000000] [--readings 200000] [--keep DIR]

The run has 30 to 100 tokens a request and an experiment of fourteen hypotheses. `judge` is from the files to the
verdict, by the clock and of CPU, which a busy machine does not lengthen; to start is the interpreter with its imports.
The peak is that of the whole process.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
import pyarrow as pa

from chaos.journal.evidence import sha256_of
from chaos.journal.recorder import Recorder
from chaos.journal.samples import (
    READINGS_FILE,
    READINGS_SCHEMA,
    SAMPLES_FILE,
    SAMPLES_SCHEMA,
    readings_table,
    samples_table,
)
from chaos.journal.sketch import buckets_of
from tests.verdict.story import EXPERIMENT, INJECT, LOAD_END, LOAD_START, REVERT, Story

ROOT = Path(__file__).parents[1]
BATCH = 750
"""Rows of a batch at 5,000 a second, flushed as in a run."""

MORE = """\
  - {name: text flows, window: outage, measure: itl, quantile: p99, at_most: 1s}
  - {name: answers end, window: outage, measure: e2e, quantile: p95, at_most: 30s}
  - {name: streams are whole, window: outage, measure: stream_integrity, at_least: 99%}
  - {name: answers keep their length, window: outage, measure: output_length, at_least: 0.9}
  - {name: nobody is refused, window: outage, measure: shed_ratio, at_most: 1%}
  - {name: quick again, measure: recovery_time, of: ttft, at_most: 5s}
"""
JUDGE = """\
import resource, sys, time
from pathlib import Path
from chaos.writeup import judged
imported, began = time.process_time(), time.perf_counter()
_, evidence, verdict = judged(Path(sys.argv[1]))
judged_s, cpu_s = time.perf_counter() - began, time.process_time() - imported
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
assert len(evidence.samples) == int(sys.argv[2]) and len(evidence.problems) == 0, evidence.problems
print(f"judge {judged_s:.2f}s, of CPU {cpu_s:.2f}s; {imported:.2f}s of CPU before it to start; peak {peak:.0f} MiB")
print(f"{verdict.verdict}, {len(verdict.hypotheses)} hypotheses: {' '.join(h.measure for h in verdict.hypotheses)}")
"""


def write_run(folder: Path, samples: int, readings: int) -> None:
    """A run directory of that size: the story of an outage, with as many users."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "experiment.yaml").write_text(EXPERIMENT + MORE)
    (folder / "plan.json").write_text(json.dumps({"experiment": "retrieval/vector_store_outage"}))
    _write(folder / SAMPLES_FILE, SAMPLES_SCHEMA, _sample_batches(samples))
    _write(folder / READINGS_FILE, READINGS_SCHEMA, _reading_batches(readings))
    recorder = Recorder(folder, clock=None, origin=0.0)  # type: ignore[arg-type]  # record_at needs no clock
    for t, kind, fields in Story().records():
        recorder.record_at(t, kind, **fields | ({"loads": _planned(samples)} if kind == "load_started" else {}))
    counts = {"records": recorder.count + 1, "samples": samples, "readings": readings}
    sums = {name: sha256_of(folder / name) for name in (SAMPLES_FILE, READINGS_FILE, "experiment.yaml", "plan.json")}
    recorder.record_at(LOAD_END + 3, "seal", **counts, sha256=sums)
    recorder.close()


def _planned(samples: int) -> list[dict[str, object]]:
    return [{"name": "chat", "planned": samples}]


def _write(path: Path, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
    with path.open("wb") as file, pa.ipc.new_stream(file, schema) as stream:
        for batch in batches:
            stream.write_batch(batch)


def _sample_batches(count: int) -> Iterator[pa.RecordBatch]:
    """Users of the story, times and pauses drawn."""
    dice = np.random.default_rng(7)
    rows = list(Story().samples())
    kinds = samples_table([rows[0], rows[len(rows) // 2]])
    words = {name: kinds[name].combine_chunks() for name in ("load", "outcome", "why", "served_by", "degraded")}
    for start in range(0, count, BATCH):
        number = np.arange(start, min(start + BATCH, count))
        yield _sample_batch(number, LOAD_START + number * ((LOAD_END - LOAD_START) / count), words, dice)


def _sample_batch(
    number: np.ndarray, due: np.ndarray, words: dict[str, pa.DictionaryArray], dice: np.random.Generator
) -> pa.RecordBatch:
    rows, hurt = len(number), (due >= INJECT) & (due < REVERT + 1)
    first = due + dice.lognormal(-3.0, 0.4, rows)
    tokens = dice.integers(30, 101, rows)
    pauses = dice.lognormal(-4.0, 0.15, int(tokens.sum()))
    keys, counts = np.unique((np.repeat(np.arange(rows), tokens) << 16) | buckets_of(pauses), return_counts=True)
    ends = pa.array(np.searchsorted(keys, np.arange(rows + 1) << 16), pa.int32())
    ids = [f"{n:032x}" for n in number.tolist()]
    columns = {
        "request": number, "attempt": np.ones(rows), "final": np.ones(rows, bool), "intended_s": due,
        "sent_s": due + dice.exponential(0.0003, rows), "first_token_s": first, "end_s": first + tokens / 100,
        "status": np.full(rows, 200), "tokens": tokens, "answer_ok": ~hurt, "trace_id": ids, "leaked": [None] * rows,
        "gap_buckets": pa.ListArray.from_arrays(ends, pa.array(keys & 0xFFFF, pa.int16())),
        "gap_counts": pa.ListArray.from_arrays(ends, pa.array(counts, pa.int32())),
    }  # fmt: skip
    coded = {name: pa.DictionaryArray.from_arrays(*_coded(each, hurt)) for name, each in words.items()}
    arrays = (coded.get(field.name, columns.get(field.name)) for field in SAMPLES_SCHEMA)
    typed = [
        each if isinstance(each, pa.Array) else pa.array(each).cast(field.type)
        for each, field in zip(arrays, SAMPLES_SCHEMA, strict=True)
    ]
    return pa.RecordBatch.from_arrays(typed, schema=SAMPLES_SCHEMA)


def _coded(word: pa.DictionaryArray, hurt: np.ndarray) -> tuple[pa.Array, pa.Array]:
    """The word of the first row for users at peace, of the second for users who are hurt."""
    codes = word.indices.to_numpy()
    return pa.array(np.where(hurt, codes[1], codes[0]), pa.int32()), word.dictionary


def _reading_batches(count: int) -> Iterator[pa.RecordBatch]:
    """The readings of the story, and as many of other series as it takes."""
    table = readings_table(Story().readings())
    known = len(table)
    yield from table.to_batches()
    others = [f'gateway_requests_total{{route="r{n}"}}' for n in range(200)]
    for start in range(known, count, BATCH):
        rows = np.arange(start, min(start + BATCH, count))
        yield pa.RecordBatch.from_arrays(
            [
                pa.array((LOAD_END + 1) * rows / count),
                pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(rows)), pa.int32()), pa.array(["gateway"])),
                pa.DictionaryArray.from_arrays(pa.array(rows % 200, pa.int32()), pa.array(others)),
                pa.array(rows.astype(np.float64)),
            ],
            schema=READINGS_SCHEMA,
        )


def main() -> None:
    """Write the run, judge it in a process of its own, print one line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument("--readings", type=int, default=200_000)
    parser.add_argument("--keep", type=Path, metavar="DIR", help="write the run here and leave it there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run_dir = options.keep or Path(folder) / "run"
        if not (run_dir / "journal.jsonl").exists():
            write_run(run_dir, options.samples, options.readings)
        size = sum(path.stat().st_size for path in run_dir.iterdir()) / 2**20
        print(f"{options.samples} samples, {options.readings} readings, {size:.0f} MiB on disk", flush=True)
        subprocess.run([sys.executable, "-c", JUDGE, str(run_dir), str(options.samples)], check=True, cwd=ROOT)


if __name__ == "__main__":
    main()
