"""What a report says, before anybody decides how it looks: one value that Markdown and HTML both draw from.

Times for readers count from the start of the load, as in the plan; the evidence counts from the start of the run.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np

from chaos.journal.evidence import Evidence
from chaos.journal.record import Record
from chaos.spec.model import Experiment
from chaos.verdict.events import happened_at
from chaos.verdict.latency import ttft_s
from chaos.verdict.outcome import FaultProof, Judged, Verdict
from chaos.verdict.statistics import quantile
from chaos.verdict.view import SERVED, Bound, View, among, decided
from chaos.verdict.windows import RunTimes, Window, times_of
from chaos.verdict.wording import say, say_bound, say_found

FELT_COLUMNS = ("", "before", "during", "recovery", "settled")
_FELT_WINDOWS = ("baseline", "fault", "recovery", "settled")
_MOST_MOMENTS = 60


@dataclass(frozen=True)
class Moment:
    """Something that happened, `at` seconds after the start of the load; `kind` is harm, relief, stack or run."""

    at: float
    kind: str
    text: str


@dataclass(frozen=True)
class Facts:
    """All that a page about one run needs."""

    experiment: Experiment
    evidence: Evidence
    verdict: Verdict
    times: RunTimes
    run_dir: str

    @property
    def zero(self) -> float:
        """Start of the load in run time; 0 when there was none."""
        return self.times.load_start or 0.0


def gather(experiment: Experiment, evidence: Evidence, verdict: Verdict, run_dir: PurePath) -> Facts:
    """Facts of one judged run."""
    return Facts(experiment, evidence, verdict, times_of(experiment, evidence), str(run_dir))


def felt(facts: Facts) -> tuple[tuple[str, ...], ...]:
    """Rows of the before, during, after table; the first cell names the row. `-` where a window never opened."""
    columns = [_felt_in(facts, facts.times.windows.get(name)) for name in _FELT_WINDOWS]
    names = ("requests", "served", "degraded", "shed", "failed or abandoned", "late", "TTFT p50", "TTFT p99")
    return tuple((name, *(column[row] for column in columns)) for row, name in enumerate(names))


def _felt_in(facts: Facts, window: Window | None) -> tuple[str, ...]:
    samples = facts.evidence.samples
    rows = None if window is None else View(facts.evidence, facts.times, window).requests()
    if rows is None or not rows.any():
        return ("-",) * 8
    outcomes = samples.outcome[rows]
    n = int(decided(samples)[rows].sum())

    def share(*wanted: str) -> str:
        return say(int(among(outcomes, frozenset(wanted)).sum()) / n, "ratio") if n else "-"

    waits = ttft_s(samples)[rows & decided(samples)]
    tails = [say(quantile(waits, q), "duration") if len(waits) else "-" for q in (0.5, 0.99)]
    return (
        str(len(outcomes)),
        share(*SERVED),
        share("degraded"),
        share("shed"),
        share("failed", "abandoned"),
        share("late"),
        *tails,
    )


def timeline(facts: Facts) -> tuple[Moment, ...]:
    """What happened, in order: faults, the stack's own events, stops. A chatty stack is cut short, and the cut is
    said.
    """
    moments = [m for record in facts.evidence.records if (m := _moment(record, facts.zero)) is not None]
    moments.sort(key=lambda moment: moment.at)
    if len(moments) <= _MOST_MOMENTS:
        return tuple(moments)
    left = len(moments) - _MOST_MOMENTS
    return (*moments[:_MOST_MOMENTS], Moment(moments[_MOST_MOMENTS].at, "run", f"{left} more in journal.jsonl"))


def _moment(record: Record, zero: float) -> Moment | None:
    told, at = record.fields, record.t - zero
    fault = told.get("fault")
    if record.kind == "event":
        who = ", ".join(str(told[key]) for key in ("dependency", "replica", "reason") if told.get(key))
        text = f"{told.get('source', 'stack')}: {told.get('name')}" + (f" ({who})" if who else "")
        return Moment(happened_at(record) - zero, "stack", text)
    if record.kind in ("fault_confirmed", "fault_still", "fault_gone"):
        return _look(record, at)
    if record.kind == "fault_injected":
        return Moment(
            at,
            "harm",
            f"{fault} injected: {told.get('fault_kind')} on {', '.join(told.get('targets', ())) or 'nothing'}",
        )
    if record.kind == "fault_reverted":
        return Moment(at, "relief", f"{fault} reverted by {told.get('by')}")
    if record.kind == "fault_failed":
        return Moment(at, "harm", f"{fault}: {told.get('step')} failed: {told.get('why')}")
    if record.kind == "guard_tripped":
        return Moment(at, "run", f"guard tripped: {told.get('guard')} was {told.get('value')}, {told.get('bound')}")
    if record.kind == "run_finished":
        return Moment(at, "run", f"run {told.get('ending')}")
    return None


def _look(record: Record, at: float) -> Moment:
    seen, fault, what = record.fields.get("seen"), record.fields.get("fault"), record.fields.get("what")
    words = {
        "fault_confirmed": ("confirmed", "NOT confirmed"),
        "fault_still": ("still there", "NO LONGER there"),
        "fault_gone": ("seen gone", "NOT seen gone"),
    }[record.kind]
    kind = "relief" if record.kind == "fault_gone" else "harm"
    return Moment(at, kind, f"{fault} {words[0 if seen else 1]}: {what}")


def found(judged: Judged) -> str:
    """The number with its interval."""
    if judged.interval is None:
        return "missing"
    return say_found(judged.value, judged.interval, judged.unit)


def wanted(judged: Judged) -> str:
    """The bound in words."""
    return say_bound(Bound(judged.bound.get("at_least"), judged.bound.get("at_most")), judged.unit)


def bite(proof: FaultProof) -> str:
    """Did it bite? Who says so?"""
    if proof.injected_at is None:
        return "never injected"
    return f"{'yes' if proof.confirmed else 'NOT CONFIRMED'}: {proof.what}"


def gone(proof: FaultProof) -> str:
    """Who put it back, and did somebody see it go?"""
    if proof.injected_at is None:
        return "-"
    return f"yes, by {proof.reverted_by}" if proof.gone else "NOT SEEN GONE"


def span(proof: FaultProof, zero: float) -> str:
    """`15.0s to 30.1s` after the start of the load."""
    if proof.injected_at is None:
        return "-"
    end = "never" if proof.reverted_at is None else f"{proof.reverted_at - zero:.1f}s"
    return f"{proof.injected_at - zero:.1f}s to {end}"


def replay_command(experiment: Experiment, verdict: Verdict) -> str:
    """The command that runs the same plan again: same file, profile, seed and planted weaknesses."""
    words = ["brownout", "run", experiment.path or experiment.name, "--profile", verdict.profile or "embedded"]
    words += ["--seed", str(verdict.seed)]
    for weakness in verdict.weaknesses:
        words += ["--weakness", weakness]
    return shlex.join(words)


def lateness_of(proof: FaultProof) -> str:
    """How late the inject was against the plan."""
    return "-" if proof.lateness_s is None else f"{proof.lateness_s * 1e3:.1f} ms"


def arrivals_per_s(facts: Facts) -> tuple[int, ...]:
    """Requests due in each second of the load."""
    end = facts.times.load_end or facts.zero
    due = facts.evidence.samples.finals.intended_s - facts.zero
    counts, _ = np.histogram(due, bins=np.arange(0, max(1, int(end - facts.zero)) + 1))
    return tuple(counts.tolist())
