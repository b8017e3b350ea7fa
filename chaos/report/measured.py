"""A judged run as metric families: the one table that the Prometheus text and the OpenTelemetry export are made from.

Every family is a gauge or a histogram: a run that is over counts nothing any more. Values are in base units (seconds,
shares from 0 to 1, Unix time), and each has the labels experiment, run, seed and profile. What a run does not know is
absent.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from chaos.journal.tables import SampleTable
from chaos.openmetrics import TTFT_BOUNDS_S, Family, Labels, Point, Spread
from chaos.report.facts import Facts
from chaos.verdict.latency import e2e_s, ttft_s
from chaos.verdict.measures.recovery_time import RecoveryTime
from chaos.verdict.outcome import FaultProof, Judged
from chaos.verdict.statistics import Floats
from chaos.verdict.view import View, decided
from chaos.verdict.windows import Window

VERDICTS = ("upheld", "refuted", "inconclusive")

Found = Iterator[tuple[Labels, float | None]]


@dataclass(frozen=True)
class Row:
    """One name of the table. `labels` are those beside the four that every series has, `found` gives its values."""

    name: str
    labels: tuple[str, ...]
    help: str
    found: Callable[[Facts], Found]
    unit: Literal["", "seconds"] = ""


def measured(facts: Facts) -> tuple[Family, ...]:
    """Everything of the run, in the order of the table; a family may be empty."""
    common = labels_of(facts)
    return (*(_family(row, facts, common) for row in TABLE), *(_waits(facts, common, *each) for each in WAITS))


def labels_of(facts: Facts) -> dict[str, str]:
    """The four labels that every series has."""
    verdict = facts.verdict
    return {
        "experiment": verdict.experiment,
        "run": verdict.run,
        "seed": str(verdict.seed),
        "profile": verdict.profile,
    }


def unix_time(facts: Facts, t: float | None) -> float | None:
    """Unix time of a moment of the run; None where the journal does not tell when it began."""
    wall, first = facts.evidence.header.get("wall"), facts.evidence.first("run_started")
    return None if t is None or wall is None or first is None else float(wall) - first.t + t


def _family(row: Row, facts: Facts, common: Labels) -> Family:
    points = tuple(
        Point({**common, **labels}, value)
        for labels, value in row.found(facts)
        if value is not None and not math.isnan(value)
    )
    return Family(row.name, "gauge", row.help, points, row.unit)


def _info(facts: Facts) -> Found:
    verdict = facts.verdict
    yield {"fingerprint": verdict.fingerprint, "weaknesses": ",".join(verdict.weaknesses)}, 1.0


def _verdict(facts: Facts) -> Found:
    for name in VERDICTS:
        yield {"verdict": name}, float(facts.verdict.verdict == name)


def _length(facts: Facts) -> float | None:
    records = facts.evidence.records
    return records[-1].t - records[0].t if records else None


def _recovered(facts: Facts) -> float | None:
    """Seconds, or inf where users suffered to the end of the load."""
    estimate = RecoveryTime().estimate(View(facts.evidence, facts.times))
    endless = estimate.interval is not None and math.isinf(estimate.interval[1])
    return math.inf if estimate.value is None and endless else estimate.value


def _once(pick: Callable[[Facts], float | None]) -> Callable[[Facts], Found]:
    return lambda facts: iter([({}, pick(facts))])


def _requests(facts: Facts) -> Found:
    for outcome, count in facts.verdict.requests.items():
        if outcome != "planned":
            yield {"outcome": outcome}, float(count)


def _preconditions(facts: Facts) -> Found:
    for condition in facts.verdict.preconditions:
        yield {"precondition": condition.name}, float(condition.held)


def _edges(pick: Callable[[Window], float]) -> Callable[[Facts], Found]:
    def found(facts: Facts) -> Found:
        for window in facts.times.windows.values():
            yield {"window": window.name}, unix_time(facts, pick(window))

    return found


def _hypotheses(pick: Callable[[Judged], float | None]) -> Callable[[Facts], Found]:
    def found(facts: Facts) -> Found:
        for judged in facts.verdict.hypotheses:
            yield _named(judged), pick(judged)

    return found


def _named(judged: Judged) -> Labels:
    return {
        "hypothesis": judged.name,
        "measure": judged.measure,
        "window": judged.window or "",
        "unit": {"duration": "seconds"}.get(judged.unit, judged.unit),
    }


def _hypothesis_verdicts(facts: Facts) -> Found:
    for judged in facts.verdict.hypotheses:
        for name in VERDICTS:
            yield {**_named(judged), "verdict": name}, float(judged.verdict == name)


def _bounds(facts: Facts) -> Found:
    for judged in facts.verdict.hypotheses:
        for side, limit in judged.bound.items():
            yield {**_named(judged), "bound": side}, limit


def _faults(pick: Callable[[Facts, FaultProof], float | None]) -> Callable[[Facts], Found]:
    def found(facts: Facts) -> Found:
        for proof in facts.verdict.faults:
            yield {"fault": proof.name, "kind": proof.kind, "target": ",".join(proof.targets)}, pick(facts, proof)

    return found


def _seen_at(facts: Facts, kind: str, fault: str) -> float | None:
    """When a look first saw what it looked for."""
    looks = (r.t for r in facts.evidence.of_kind(kind) if r.fields.get("fault") == fault and r.fields.get("seen"))
    return unix_time(facts, next(looks, None))


def _side(judged: Judged, side: int) -> float | None:
    return None if judged.interval is None else judged.interval[side]


_FAULT = ("fault", "kind", "target")
_HYPOTHESIS = ("hypothesis", "measure", "window", "unit")

TABLE: tuple[Row, ...] = (
    Row("brownout_run_info", ("fingerprint", "weaknesses"), "What was run; always 1.", _info),
    Row("brownout_run_verdict", ("verdict",), "1 for the verdict of the run, 0 for the other two.", _verdict),
    Row("brownout_run_exit_code", (), "Exit code of the run.", _once(lambda facts: float(facts.verdict.exit_code))),
    Row(
        "brownout_run_start_timestamp_seconds",
        (),
        "When the run began, Unix time.",
        _once(lambda facts: unix_time(facts, 0.0)),
        "seconds",
    ),
    Row(
        "brownout_run_duration_seconds",
        (),
        "From the first record of the run to its last.",
        _once(_length),
        "seconds",
    ),
    Row(
        "brownout_run_recovery_seconds",
        (),
        "From the last revert until as many users are served as before, and stay so; +Inf: not while there was load.",
        _once(_recovered),
        "seconds",
    ),
    Row("brownout_run_requests", ("outcome",), "Planned requests by how they ended.", _requests),
    Row(
        "brownout_run_requests_planned",
        (),
        "Requests that were planned: the sum of all outcomes.",
        _once(lambda facts: facts.verdict.requests.get("planned")),
    ),
    Row("brownout_run_precondition_held", ("precondition",), "1: the numbers can be trusted in this.", _preconditions),
    Row(
        "brownout_window_start_timestamp_seconds",
        ("window",),
        "When a window opened, Unix time.",
        _edges(lambda window: window.start),
        "seconds",
    ),
    Row(
        "brownout_window_end_timestamp_seconds",
        ("window",),
        "When a window closed, Unix time.",
        _edges(lambda window: window.end),
        "seconds",
    ),
    Row(
        "brownout_fault_injected_timestamp_seconds",
        _FAULT,
        "When a fault was injected, Unix time.",
        _faults(lambda facts, proof: unix_time(facts, proof.injected_at)),
        "seconds",
    ),
    Row(
        "brownout_fault_confirmed",
        _FAULT,
        "1: somebody else than the fault itself saw it, from its start to its end.",
        _faults(lambda _, proof: float(proof.confirmed)),
    ),
    Row(
        "brownout_fault_confirmed_timestamp_seconds",
        _FAULT,
        "When it was first seen, Unix time.",
        _faults(lambda facts, proof: _seen_at(facts, "fault_confirmed", proof.name)),
        "seconds",
    ),
    Row(
        "brownout_fault_reverted_timestamp_seconds",
        _FAULT,
        "When it was reverted, Unix time.",
        _faults(lambda facts, proof: unix_time(facts, proof.reverted_at)),
        "seconds",
    ),
    Row(
        "brownout_fault_gone",
        _FAULT,
        "1: somebody saw that it was gone.",
        _faults(lambda _, proof: float(proof.gone)),
    ),
    Row(
        "brownout_fault_gone_timestamp_seconds",
        _FAULT,
        "When it was first seen to be gone, Unix time.",
        _faults(lambda facts, proof: _seen_at(facts, "fault_gone", proof.name)),
        "seconds",
    ),
    Row(
        "brownout_hypothesis_verdict",
        (*_HYPOTHESIS, "verdict"),
        "1 for the verdict of a hypothesis, 0 for the other two.",
        _hypothesis_verdicts,
    ),
    Row(
        "brownout_hypothesis_value",
        _HYPOTHESIS,
        "What was found, in the unit of the label; +Inf: it never came.",
        _hypotheses(lambda judged: judged.value),
    ),
    Row(
        "brownout_hypothesis_low",
        _HYPOTHESIS,
        "Lower end of the interval, 95 % sure.",
        _hypotheses(lambda judged: _side(judged, 0)),
    ),
    Row(
        "brownout_hypothesis_high",
        _HYPOTHESIS,
        "Upper end of the interval, 95 % sure; +Inf: no limit.",
        _hypotheses(lambda judged: _side(judged, 1)),
    ),
    Row(
        "brownout_hypothesis_bound",
        (*_HYPOTHESIS, "bound"),
        "What was wanted, in the unit of the label.",
        _bounds,
    ),
    Row(
        "brownout_hypothesis_samples",
        _HYPOTHESIS,
        "How many samples the answer rests on.",
        _hypotheses(lambda judged: float(judged.n)),
    ),
)

WAITS = (
    (
        "brownout_run_ttft_seconds",
        "From intended send to first token; one that never came counts in +Inf and adds nothing to the sum.",
        ttft_s,
    ),
    (
        "brownout_run_e2e_seconds",
        "From intended send to last token; one that never came counts in +Inf and adds nothing to the sum.",
        e2e_s,
    ),
)
"""Histograms over all requests of a load, with the label `load`; requests of unknown end are left out."""


def _waits(facts: Facts, common: Labels, name: str, told: str, waits: Callable[[SampleTable], Floats]) -> Family:
    finals = facts.evidence.samples.finals
    known, values = decided(finals), waits(finals)
    spreads = tuple(
        Spread.of({**common, "load": load}, TTFT_BOUNDS_S, values[known & (finals.load == load)].tolist())
        for load in sorted(set(finals.load.tolist()))
    )
    return Family(name, "histogram", told, spreads, "seconds")
