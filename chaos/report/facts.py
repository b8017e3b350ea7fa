"""What a report says, before anybody decides how it looks: one value that Markdown and HTML both draw from.

Times for readers count from the start of the load, as in the plan; the evidence counts from the start of the run.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import PurePath

from chaos.journal.evidence import Evidence
from chaos.report.events import Moment, whole_story
from chaos.report.plain import plain
from chaos.spec.model import Experiment
from chaos.verdict.latency import ttft_s
from chaos.verdict.machine import machine
from chaos.verdict.outcome import FaultProof, Judged, Verdict
from chaos.verdict.statistics import quantile
from chaos.verdict.view import SERVED, Bound, View, among, decided
from chaos.verdict.windows import RunTimes, Window, times_of
from chaos.verdict.wording import say, say_bound, say_found

FELT_COLUMNS = ("", "before", "during", "recovery", "settled")
HYPOTHESIS_COLUMNS = ("verdict", "hypothesis", "found", "wanted", "measured")
HYPOTHESIS_NOTE = "In brackets: where the true value lies, 95% sure on each side."
NO_LOAD = "No load was sent, so nobody felt anything."
TIMES_NOTE = "Times count from the start of the load."
_FELT_WINDOWS = ("baseline", "fault", "recovery", "settled")
_FELT_ROWS = ("window", "requests", "served", "degraded", "shed", "late", "failed", "TTFT p50", "TTFT p99")
_MOST_MOMENTS = 60


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
    return tuple((name, *(column[row] for column in columns)) for row, name in enumerate(_FELT_ROWS))


def _felt_in(facts: Facts, window: Window | None) -> tuple[str, ...]:
    samples = facts.evidence.samples
    rows = None if window is None else View(facts.evidence, facts.times, window).requests()
    if window is None or rows is None or not rows.any():
        return ("-",) * len(_FELT_ROWS)
    outcomes = samples.outcome[rows]
    n = int(decided(samples)[rows].sum())

    def counted(*wanted: str) -> str:
        return _share(int(among(outcomes, frozenset(wanted)).sum()), n)

    waits = ttft_s(samples)[rows & decided(samples)]
    tails = [say(quantile(waits, q), "duration") if len(waits) else "-" for q in (0.5, 0.99)]
    shares = (counted(*SERVED), counted("degraded"), counted("shed"), counted("late"), counted("failed", "abandoned"))
    return (_spans(window, facts.zero), str(len(outcomes)), *shares, *tails)


def _share(count: int, n: int) -> str:
    """`137 (99.28%)`; a bare 0 is easier to skip than a column of percentages."""
    return "-" if not n else f"{count} ({round(100 * count / n, 2):g}%)" if count else "0"


def _spans(window: Window, zero: float) -> str:
    return ", ".join(f"{begin - zero:.1f}s to {end - zero:.1f}s" for begin, end in window.spans)


def timeline(facts: Facts) -> tuple[Moment, ...]:
    """What happened, in order: faults, the stack's own events, stops, notes made under load. A chatty stack is cut
    short, and the cut is said.
    """
    moments = _with_notes(facts, whole_story(facts.evidence.records))
    left = len(moments) - _MOST_MOMENTS
    if left <= 0:
        return moments
    return (*moments[:_MOST_MOMENTS], Moment(moments[_MOST_MOMENTS].at, "run", f"{left} more in journal.jsonl"))


def _with_notes(facts: Facts, moments: tuple[Moment, ...]) -> tuple[Moment, ...]:
    """Notes from before the load say what was found there, not what happened; they stand at the top of a page."""
    notes = [
        Moment(record.t - facts.zero, "run", plain(f"note: {record.fields.get('text', '')}"))
        for record in facts.evidence.of_kind("note")
        if facts.times.load_start is not None and record.t >= facts.zero
    ]
    return tuple(sorted((*moments, *notes), key=lambda moment: -1.0 if moment.at is None else moment.at))


def sentence(text: str) -> str:
    """With a capital and a full stop."""
    return text[:1].upper() + text[1:].rstrip(".") + "." if text else ""


def hypothesis_row(judged: Judged) -> tuple[str, str, str, str]:
    """What stands behind the verdict: name, found, wanted, and how it was measured."""
    where = f" in {judged.window}" if judged.window else ""
    return (judged.name, found(judged), wanted(judged), f"{judged.measure}{where}, n {judged.n}")


def told(judged: Judged) -> str:
    """Why, what would settle it, and the records that it rests on."""
    settle = f". To settle: {judged.to_settle}" if judged.to_settle else ""
    return judged.why + settle + (f". Rests on {'; '.join(judged.records)}" if judged.records else "")


def doubts(facts: Facts) -> tuple[Judged, ...]:
    """Inconclusive hypotheses that say something of their own; one unmet precondition would say the same of all."""
    met = all(condition.held for condition in facts.verdict.preconditions)
    return tuple(h for h in facts.verdict.hypotheses if met and h.verdict == "inconclusive")


def refuted(facts: Facts) -> tuple[Judged, ...]:
    """The findings."""
    return tuple(h for h in facts.verdict.hypotheses if h.verdict == "refuted")


def done_columns(facts: Facts) -> tuple[str, ...]:
    """One column a fault: what is wide for one fault is narrow on a phone."""
    return ("fault", *(proof.name for proof in facts.verdict.faults))


def done(facts: Facts) -> tuple[tuple[str, ...], ...]:
    """What was done to whom, as rows under `done_columns`."""
    proofs, zero = facts.verdict.faults, facts.zero
    return (
        ("what", *(proof.kind for proof in proofs)),
        ("on", *(", ".join(proof.targets) or "nothing" for proof in proofs)),
        ("in force", *(span(proof, zero) for proof in proofs)),
        ("did it bite?", *(bite(proof) for proof in proofs)),
        ("put back?", *(gone(proof) for proof in proofs)),
        ("how we look", *(proof.observer or "-" for proof in proofs)),
        ("what is really broken", *(proof.fidelity or "-" for proof in proofs)),
        ("injected late by", *(lateness_of(proof) for proof in proofs)),
    )


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


def machine_note(facts: Facts) -> str:
    """`The machine: timers 200us late p50, ...`; empty where nobody measured it."""
    found = machine(facts.evidence)
    return f"The machine: {found}." if found else ""


def again(facts: Facts) -> str:
    """Two command lines. The first runs the same plan again: same file, profile, seed and planted weaknesses; the
    second judges the evidence of this run.
    """
    verdict, experiment = facts.verdict, facts.experiment
    words = ["brownout", "run", experiment.path or experiment.name, "--profile", verdict.profile or "embedded"]
    words += ["--seed", str(verdict.seed)]
    for weakness in verdict.weaknesses:
        words += ["--weakness", weakness]
    return f"{shlex.join(words)}\n{shlex.join(['brownout', 'judge', facts.run_dir])}"


def lateness_of(proof: FaultProof) -> str:
    """How late the inject was against the plan."""
    return say(proof.lateness_s, "duration")
