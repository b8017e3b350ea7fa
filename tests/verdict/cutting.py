"""Synthetic runs with dice, watched as they go on: each whole, and as it would be when ended where it was decided."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from chaos.journal.evidence import Evidence
from chaos.journal.record import ReadingRow, Record, Sample
from chaos.verdict.outlook import Outlook
from tests.verdict.story import EXPERIMENT, INJECT, LOAD_END, LOAD_START, REVERT, Behaviour, Story, experiment

MORE = """\
  - {name: calm before, window: baseline, measure: success_ratio, at_least: 97%}
  - {name: recovers, window: recovery, measure: success_ratio, at_least: 90%}
  - {name: quick again, window: recovery, measure: e2e, quantile: p90, at_most: 300ms}
  - {name: nobody turned away, window: recovery, measure: shed_ratio, at_most: 5%}
  - {name: whole again, window: settled, measure: degraded_ratio, at_most: 10%}
  - {name: flows, window: outage, measure: itl, quantile: p90, at_most: 100ms}
  - {name: quiet, window: recovery, absent: breaker_opened}
  - {name: as before, window: recovery, against: baseline, measure: success_ratio, at_most: 20%}
"""
CLAIMS = experiment(EXPERIMENT + MORE)
"""Claims about every window, those that can be decided early and those that cannot."""

NOTHING: Mapping[str, Mapping[str, Any]] = {}
_SELDOM, _OFTEN = (0, 0, 0, 0, 0, 0.05), (0, 0.05, 0.1, 0.2, 0.3)
_NONE = ("",) * 6
_RESULTS = ("good", "failed", "shed", "late")


@dataclass(frozen=True)
class Watched:
    """One run: what it left behind in the end, and where it could have ended with what it would have left then."""

    whole: Evidence
    decided_at: float | None
    refuted: tuple[str, ...]
    cut: Evidence | None


def watched(seed: int, replaced: Mapping[str, Mapping[str, Any]] = NOTHING) -> Watched:
    """A run by dice, looked at once a second. `replaced` changes fields of its records, by kind."""
    dice = random.Random(seed)
    story = replace(_story(dice), replaced=replaced)
    trouble = {"before": dice.choice(_SELDOM), "hurt": dice.choice(_SELDOM), "after": dice.choice(_OFTEN)}
    samples = sorted((_fate(s, trouble, dice) for s in story.samples()), key=lambda s: s.end_s)
    unheard = dice.choice((*_NONE, "breaker_opened", "breaker_closed"))
    told = [told for told in story.records() if told[2].get("name") != unheard]
    records = [Record(n, t, kind, fields) for n, (t, kind, fields) in enumerate(told)]
    readings = list(story.readings())
    at, names = _decided(records, samples, readings)
    cut = None if at is None else Evidence.build(*ended_at(at, names, records, samples, readings))
    return Watched(Evidence.build(records, samples, readings), at, names, cut)


def _story(dice: random.Random) -> Story:
    hurt = Behaviour(
        fail_every=dice.choice((0, 0, 0, 0, 0, 4, 50)),
        degraded="no_retrieval",
        ttft_s=dice.choice((0.06, 0.06, 0.06, 0.06, 1.4, 1.9)),
        calls=dice.choice((0, 1, 4)),
    )
    flapping = dice.random() < 0.1
    again = (REVERT + 5.0, "event", {"source": "gateway", "at": REVERT + 5.0, "name": "breaker_opened"})
    return Story(hurt=hurt, scar_s=dice.choice((1.0, 1.0, 1.0, 4.0, 14.0)), added=(again,) if flapping else ())


def _fate(sample: Sample, trouble: dict[str, float], dice: random.Random) -> Sample:
    """Some requests end in another way than the story says."""
    t = sample.intended_s
    when = "before" if t < INJECT else "hurt" if t < REVERT else "after"
    if dice.random() >= trouble[when]:
        return sample
    outcome = dice.choice(_RESULTS)
    if outcome in ("good", "late"):
        return replace(sample, outcome=outcome, end_s=sample.intended_s + dice.choice((0.2, 6.0)))
    return replace(sample, outcome=outcome, first_token_s=None, gaps_s=(), answer_ok=False, degraded="", status=503)


def _decided(
    records: list[Record], samples: list[Sample], readings: list[ReadingRow]
) -> tuple[float | None, tuple[str, ...]]:
    due = [LOAD_START + number / 20 - LOAD_START for number in range(int((LOAD_END - LOAD_START) * 20))]
    outlook = Outlook(CLAIMS, {"chat": due})
    told: list[tuple[float, int, Record | Sample | ReadingRow]] = sorted(
        [(r.t, 0, r) for r in records] + [(s.end_s, 1, s) for s in samples] + [(r.t, 2, r) for r in readings],
        key=lambda entry: entry[:2],
    )
    now = 1.0
    for t, _, thing in told:
        while now <= min(t, LOAD_END):
            if names := outlook.refuted(now):
                return now, names
            now += 1.0
        _tell(outlook, thing)
    return None, ()


def _tell(outlook: Outlook, thing: Record | Sample | ReadingRow) -> None:
    if isinstance(thing, Record):
        outlook.hear(thing)
    elif isinstance(thing, Sample):
        outlook.feed(thing)
    else:
        outlook.read(thing)


def ended_at(
    at: float, names: tuple[str, ...], records: list[Record], samples: list[Sample], readings: list[ReadingRow]
) -> tuple[list[Record], list[Sample], list[ReadingRow]]:
    """What is left of a run that ends at `at`: what had ended, then a final row for all else, and the end."""
    known = [sample for sample in samples if sample.end_s < at]
    before = [record for record in records if record.t < at]
    ends = (
        (at, "decided", {"hypotheses": list(names), "samples": len(known)}),
        (at + 0.5, "load_finished", {"loads": {}, "lateness_s_p50": 0.0, "lateness_s_p99": 0.0}),
        (at + 1.0, "run_finished", {"ending": "decided", "why": "refuted", "reverted": True}),
    )
    after = [Record(len(before) + n, *told) for n, told in enumerate(ends)]
    cut_off = [_cut_off(sample, at) for sample in samples if sample.end_s >= at]
    return before + after, known + cut_off, [reading for reading in readings if reading.t < at + 1.0]


def _cut_off(sample: Sample, at: float) -> Sample:
    """In flight, and cut off; or never sent."""
    sent = sample.intended_s < at
    return replace(
        sample, outcome="indeterminate", end_s=at + 0.5, first_token_s=None, gaps_s=(), attempt=int(sent),
        sent_s=sample.sent_s if sent else float("nan"), why="stopped" if sent else "not_sent", answer_ok=None,
    )  # fmt: skip


@cache
def _run(seed: int) -> Watched:
    return watched(seed)


def runs(count: int = 40) -> Iterator[tuple[int, Watched]]:
    """Seeds from 0, each with its run."""
    return ((seed, _run(seed)) for seed in range(count))
