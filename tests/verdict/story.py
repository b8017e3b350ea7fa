"""Synthetic runs with known truth: a vector-store outage told second by second, as evidence in memory or as a run
directory.

`python -m tests.verdict.story` writes fixtures/journals anew from `CASES`.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaos.faults.catalog import FAULTS
from chaos.journal.evidence import Evidence
from chaos.journal.record import ReadingRow, Record, Sample
from chaos.journal.recorder import Recorder
from chaos.journal.samples import READINGS_FILE, READINGS_SCHEMA, SAMPLES_FILE, SAMPLES_SCHEMA, RowWriter
from chaos.spec.catalog import Catalog
from chaos.spec.model import Experiment
from chaos.spec.parse import parse
from chaos.verdict.measures.catalog import MEASURES

JOURNALS = Path(__file__).parents[2] / "fixtures" / "journals"
LOAD_START = 1.0
BASELINE, FAULT, RECOVERY, SETTLED = 15.0, 15.0, 12.0, 8.0
INJECT = LOAD_START + BASELINE
REVERT = INJECT + FAULT
LOAD_END = REVERT + RECOVERY + SETTLED

EXPERIMENT = """\
version: 1
title: The vector store goes away for fifteen seconds
why: Retrieval is a soft dependency. Answers may lose their citations; users must still be served.
owner: search-sre
runbook: vector-store-outage
tags: [retrieval]
blast_radius: {roles: [vector-store], targets: 1, duration: 30s}
load:
  - {name: chat, route: rag, prompts: product-questions, rate: 20/s, arrivals: constant}
windows: {baseline: 15s, recovery: 12s, settled: 8s}
faults:
  - {name: outage, kind: process_kill, target: {role: vector-store}, restart: on_revert, at: 0s, for: 15s}
hypotheses:
  - {name: users are served, window: outage, measure: success_ratio, at_least: 99%}
  - {name: answers say so, window: outage, measure: degraded_ratio, reason: no_retrieval, at_least: 95%, grace: 3s}
  - {name: no slow failure, window: outage, measure: ttft, quantile: p95, at_most: 1.5s}
  - {name: breaker opens, event: breaker_opened, dependency: vector-store, within: 3s, of: outage.start}
  - {name: breaker closes, event: breaker_closed, dependency: vector-store, within: 10s, of: outage.end}
  - {name: no pile-on, window: outage, measure: retry_amplification, dependency: vector-store, at_most: 1.1}
  - {name: right answers return, window: settled, measure: recall, at_least: 95%}
  - {name: quick recovery, measure: recovery_time, of: success_ratio, at_most: 5s}
  - {name: nothing left behind, window: settled, measure: requests_running, at_most: 0}
"""


def experiment(text: str = EXPERIMENT) -> Experiment:
    """The parsed experiment, with the real catalogs."""
    parsed = parse(text, "experiments/retrieval/vector_store_outage.yaml", Catalog(FAULTS, MEASURES))
    assert isinstance(parsed, Experiment), parsed
    return parsed


@dataclass(frozen=True)
class Behaviour:
    """How the stack treats users for a while. `fail_every` 10 fails each tenth request, 0 none."""

    fail_every: int = 0
    degraded: str = ""
    ttft_s: float = 0.05
    calls: int = 1


@dataclass(frozen=True)
class Story:
    """One run. `scar_s` is how long users go on feeling the outage after the revert."""

    usual: Behaviour = Behaviour()
    hurt: Behaviour = Behaviour(degraded="no_retrieval", ttft_s=0.06, calls=0)
    scar_s: float = 1.0
    rate: float = 20.0
    events: bool = True
    sent: float = 1.0
    lateness_s: float = 0.0005
    running_at_end: float = 0.0
    ending: str | None = "completed"
    replaced: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    left_out: frozenset[str] = frozenset()
    weaknesses: tuple[str, ...] = ()
    cut_at: float = 1e9
    added: tuple[tuple[float, str, Mapping[str, Any]], ...] = ()

    def behaviour(self, t: float) -> Behaviour:
        """What a request that was due at `t` meets."""
        return self.hurt if INJECT <= t < REVERT + self.scar_s else self.usual

    def samples(self) -> Iterator[Sample]:
        """One final row per planned request."""
        dice = random.Random(7)
        for number in range(int((LOAD_END - LOAD_START) * self.rate)):
            due = LOAD_START + number / self.rate
            if due < self.cut_at:
                yield self._sample(number, due, dice.random())

    def _sample(self, number: int, due: float, luck: float) -> Sample:
        how = self.behaviour(due)
        never_sent = number >= self.sent * (LOAD_END - LOAD_START) * self.rate
        failed = never_sent or (how.fail_every > 0 and number % how.fail_every == 0)
        first = due + how.ttft_s * (1 + 0.2 * luck)
        return Sample(
            load="chat",
            request=number,
            attempt=0 if never_sent else 1,
            final=True,
            intended_s=due,
            sent_s=float("nan") if never_sent else due + self.lateness_s,
            first_token_s=None if failed else first,
            end_s=due + 0.5 if failed else first + 0.08,
            outcome="indeterminate" if never_sent else "failed" if failed else "degraded" if how.degraded else "good",
            why="stopped" if never_sent else "status_500" if failed else "",
            status=500 if failed else 200,
            served_by="" if failed else "engine-a",
            degraded="" if failed else how.degraded,
            tokens=0 if failed else 5,
            gaps_s=() if failed else (0.02, 0.02, 0.02, 0.02),
            answer_ok=not failed and not how.degraded,
            trace_id=f"{number:032x}",
        )

    def readings(self) -> Iterator[ReadingRow]:
        """Scrapes twice a second: calls, running requests, the heartbeat of the events probe."""
        calls, t, due = 100.0, 0.0, LOAD_START
        while t <= LOAD_END + 1.5 and t < self.cut_at:
            while due < min(t, LOAD_END):
                calls += self.behaviour(due).calls
                due += 1 / self.rate
            busy = LOAD_START < t < LOAD_END
            for target in ("engine-a", "engine-b"):
                running = 2.0 if busy else (self.running_at_end if t > LOAD_END and target == "engine-a" else 0.0)
                yield ReadingRow(t, target, 'vllm:num_requests_running{model_name="main"}', running)
            yield ReadingRow(
                t, "gateway", 'gateway_upstream_calls_total{dependency="vector-store",kind="first"}', calls
            )
            yield ReadingRow(t, "gateway", "events_last", 4.0)
            t += 0.5

    def records(self) -> Iterator[tuple[float, str, dict[str, Any]]]:
        """Time, kind and fields of every journal record."""
        for t, kind, fields in self._all_records():
            if kind not in self.left_out and (t < self.cut_at or kind == "run_finished"):
                yield t, kind, {**fields, **self.replaced.get(kind, {})}

    def _all_records(self) -> Iterator[tuple[float, str, dict[str, Any]]]:
        planned = int((LOAD_END - LOAD_START) * self.rate)
        about, seen = {"fault": "outage"}, {"seen": True, "observer": "/proc and a connect", "took_s": 0.02}
        yield 0.0, "run_started", {
            "version": 1, "run": "2026-12-01T09-00-00Z-ab12", "experiment": "retrieval/vector_store_outage",
            "fingerprint": "sha256:5eed", "seed": 7, "profile": "embedded", "stack": "bundled",
            "weaknesses": list(self.weaknesses), "wall": 1796115600.0, "boot_id": "b", "pid": 1, "origin": 1000.0,
        }  # fmt: skip
        yield 0.5, "gate", {"held": True, "why": "users are served"}
        yield 0.9, "load_started", {"at": LOAD_START, "loads": [{"name": "chat", "planned": planned}]}
        yield INJECT - 0.5, "lease_granted", {"lease": "l1", **about, "targets": ["vector-store"], "lease_s": 20.0}
        yield INJECT, "fault_injected", {
            **about, "fault_kind": "process_kill", "targets": ["vector-store"],
            "fidelity": "process", "planned": INJECT - 0.001,
        }  # fmt: skip
        yield INJECT + 0.05, "fault_confirmed", {**about, **seen, "what": "3 processes gone; connect refused"}
        if self.events:
            yield INJECT + 0.9, "event", _event(INJECT + 0.8, "breaker_opened")
        yield REVERT - 0.1, "fault_still", {**about, **seen, "what": "3 processes gone; connect refused"}
        yield REVERT, "fault_reverted", {**about, "by": "timeline", "took_s": 0.01}
        yield REVERT + 0.4, "fault_gone", {**about, **seen, "what": "answers again"}
        if self.events:
            yield REVERT + 2.5, "event", _event(REVERT + 2.1, "breaker_closed")
        for t, kind, fields in self.added:
            yield t, kind, dict(fields)
        yield LOAD_END + 0.7, "load_finished", {
            "loads": {"chat": {"planned": planned, "sent": planned, "finished": planned}},
            "lateness_s_p50": self.lateness_s, "lateness_s_p99": self.lateness_s,
        }  # fmt: skip
        if self.ending:
            yield LOAD_END + 2.0, "run_finished", {"ending": self.ending, "why": "", "reverted": True}

    def evidence(self) -> Evidence:
        """The run in memory."""
        records = [Record(n, t, kind, fields) for n, (t, kind, fields) in enumerate(self.records())]
        return Evidence.build(records, self.samples(), self.readings())

    def write(self, run_dir: Path) -> None:
        """The run as a run directory, as the recorder writes it."""
        run_dir.mkdir(parents=True)
        (run_dir / "experiment.yaml").write_text(EXPERIMENT, encoding="utf-8")
        recorder = Recorder(run_dir, clock=None, origin=0.0)  # type: ignore[arg-type]  # record_at needs no clock
        for t, kind, fields in self.records():
            recorder.record_at(t, kind, **fields)
        samples = _rows(run_dir / SAMPLES_FILE, SAMPLES_SCHEMA, self.samples())
        readings = _rows(run_dir / READINGS_FILE, READINGS_SCHEMA, self.readings())
        if self.ending:
            counts = {"records": recorder.count + 1, "samples": samples.count, "readings": readings.count}
            sums = {SAMPLES_FILE: samples.sha256, READINGS_FILE: readings.sha256}
            recorder.record_at(LOAD_END + 2.1, "seal", **counts, sha256=sums)
        recorder.close()


def _event(at: float, name: str) -> dict[str, Any]:
    return {"source": "gateway", "at": at, "name": name, "dependency": "vector-store"}


def _rows(path: Path, schema: Any, rows: Iterator[Any]) -> RowWriter[Any]:
    writer: RowWriter[Any] = RowWriter(path, schema)
    for row in rows:
        writer.append(row)
    writer.close()
    return writer


STORM = Behaviour(fail_every=4, degraded="no_retrieval", ttft_s=2.4, calls=4)
STUCK = (REVERT + 3.0, "fault_failed", {"fault": "outage", "step": "revert", "why": "the supervisor does not answer"})
UNSEEN = {"fault_confirmed": {"seen": False, "what": "3 processes still run"}}

CASES: Mapping[str, Story] = {
    "upheld": Story(),
    "refuted_pile_on": Story(hurt=STORM, scar_s=14.0, events=False, weaknesses=("breaker_missing",)),
    "inconclusive_fault_not_confirmed": Story(replaced=UNSEEN),
    "inconclusive_load_late": Story(lateness_s=0.6),
    "inconclusive_too_few_requests": Story(
        hurt=Behaviour(fail_every=140, degraded="no_retrieval", ttft_s=0.06, calls=0)
    ),
    "interrupted": Story(ending=None, cut_at=INJECT + 6),
    "stopped": Story(
        ending="stopped", left_out=frozenset({"fault_still"}), replaced={"fault_reverted": {"by": "SIGINT"}}
    ),
    "gate_not_met": Story(
        ending="gate_not_met", replaced={"gate": {"held": False, "why": "users are not served: 503"}}, cut_at=0.8
    ),
    "not_reverted": Story(left_out=frozenset({"fault_reverted", "fault_gone"}), added=(STUCK,)),
}
"""Run directories in fixtures/journals, each with the verdict it must get."""


def main() -> None:
    """Write every case anew; verdict.json of each is rewritten by the tests with BROWNOUT_REWRITE=1."""
    for name, story in CASES.items():
        shutil.rmtree(JOURNALS / name, ignore_errors=True)
        story.write(JOURNALS / name)


if __name__ == "__main__":
    main()
