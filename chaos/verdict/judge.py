"""Evidence to verdict: preconditions first, then every hypothesis, then the exit code. Pure.

    interval wholly inside the bound ──► upheld
    interval wholly outside          ──► refuted
    anything else, or nothing known  ──► inconclusive, with what would settle it

The same evidence gives the same verdict, today and in a year.
"""

from __future__ import annotations

from dataclasses import replace

from chaos.journal.evidence import Evidence
from chaos.journal.record import OUTCOMES
from chaos.spec.model import Experiment, Hypothesis, takes_window
from chaos.verdict.foregone import Known, answered, refuted_for_certain
from chaos.verdict.measures.measure import CarriesBound, Estimator
from chaos.verdict.outcome import (
    CODE_OF_ENDING,
    NOT_REVERTED,
    Estimate,
    FaultProof,
    Judged,
    Precondition,
    Truth,
    Verdict,
    exit_code_of,
    merge,
    worst,
)
from chaos.verdict.preconditions import (
    answers_known,
    fault_confirmed,
    fault_gone,
    load_delivered,
    planned_requests,
    preconditions,
)
from chaos.verdict.proofs import prove, revert_failed
from chaos.verdict.view import Bound, Control, View
from chaos.verdict.windows import RunTimes, times_of
from chaos.verdict.wording import say_bound, say_found


def judge(experiment: Experiment, evidence: Evidence) -> Verdict:
    """The verdict of one run. Never raises for damaged or missing evidence: that is what inconclusive is for."""
    times = times_of(experiment, evidence)
    proofs = prove(experiment, evidence)
    conditions = preconditions(evidence, proofs)
    unmet = tuple(c for c in conditions if not c.held)
    decided = None if unmet else evidence.first("decided")
    hypotheses = (
        tuple(judge_hypothesis(h, evidence, times, unmet) for h in experiment.hypotheses)
        if decided is None
        else _judge_decided(experiment, Known.at(evidence, decided), times)
    )
    truth: Truth = "inconclusive" if unmet else merge(h.verdict for h in hypotheses)
    header = evidence.header
    return Verdict(
        run=str(header.get("run", "")),
        experiment=experiment.name,
        title=experiment.title,
        fingerprint=str(header.get("fingerprint", "")),
        seed=int(header.get("seed", 0)),
        profile=str(header.get("profile", "")),
        weaknesses=tuple(header.get("weaknesses", ())),
        verdict=truth,
        exit_code=worst([exit_code_of(truth), *_codes(evidence, proofs)]),
        why=_why(truth, unmet, hypotheses),
        preconditions=conditions,
        faults=proofs,
        hypotheses=hypotheses,
        requests=count_requests(evidence),
        notes=tuple(str(r.fields.get("text", "")) for r in evidence.of_kind("note")),
        extra={"windows": {w.name: [list(span) for span in w.spans] for w in times.windows.values()}},
    )


def judge_hypothesis(
    hypothesis: Hypothesis, evidence: Evidence, times: RunTimes, unmet: tuple[Precondition, ...] = ()
) -> Judged:
    """One hypothesis. With a precondition unmet it is inconclusive and says what the numbers alone would have said."""
    measure = hypothesis.measure
    bound = bound_of(hypothesis)
    estimate = _estimate(hypothesis, evidence, times, bound)
    alone = decide(estimate, bound)
    told = _tell(estimate, bound, hypothesis.unit)
    truth: Truth = "inconclusive" if unmet else alone
    settle = (estimate.to_settle or _settle(estimate)) if truth == "inconclusive" else None
    if unmet:
        told = f"not met: {unmet[0].name} ({unmet[0].why}). The numbers alone: {alone}, {told}"
        settle = f"a run in which this holds: {unmet[0].name}"
    return Judged(
        name=hypothesis.name,
        verdict=truth,
        measure=measure.name,
        unit=hypothesis.unit,
        window=hypothesis.window,
        value=estimate.value,
        interval=estimate.interval,
        n=estimate.n,
        bound={k: v for k, v in (("at_least", bound.at_least), ("at_most", bound.at_most)) if v is not None},
        why=told,
        to_settle=settle,
        records=estimate.records,
    )


def _judge_decided(experiment: Experiment, known: Known, times: RunTimes) -> tuple[Judged, ...]:
    """Every hypothesis of a run that was ended early, from what was known then: refuted when nothing can change that,
    what the whole run would say where that is known, else inconclusive.
    """
    as_planned = times_of(experiment, known.evidence, as_planned=True)
    return tuple(_judge_early(each, known, times, as_planned) for each in experiment.hypotheses)


def _judge_early(hypothesis: Hypothesis, known: Known, times: RunTimes, as_planned: RunTimes) -> Judged:
    judged = judge_hypothesis(hypothesis, known.evidence, times)
    if answered(hypothesis, known, as_planned):
        return judged
    if judged.verdict == "refuted" and refuted_for_certain(hypothesis, bound_of(hypothesis), known, as_planned):
        return judged
    return replace(
        judged,
        verdict="inconclusive",
        why=f"the run was over before this could be known. The numbers until then: {judged.verdict}, {judged.why}",
        to_settle="a run that is carried out to its end: without --stop-when-refuted",
    )


def refuted_already(experiment: Experiment, known: Known) -> tuple[str, ...]:
    """The hypotheses that a run refutes whatever may still happen, by name; none while it can still become one that
    says nothing. Every fault must have lived its time, proved, and be seen gone; the load must have been delivered.

    `known` holds a record `decided`, as if the run were ended now: what is asked here is what `judge` will answer.
    """
    evidence = known.evidence
    proofs = prove(experiment, evidence)
    checks = [load_delivered(evidence), answers_known(evidence)]
    checks += [check(proof) for proof in proofs for check in (fault_confirmed, fault_gone)]
    if not all(check.held for check in checks) or any(proof.reverted_by != "timeline" for proof in proofs):
        return ()
    times = times_of(experiment, evidence, as_planned=True)
    return tuple(h.name for h in experiment.hypotheses if refuted_for_certain(h, bound_of(h), known, times))


def bound_of(hypothesis: Hypothesis) -> Bound:
    """The claim: `at_least` and `at_most`, or what the measure itself carries."""
    if isinstance(hypothesis.measure, CarriesBound):
        return hypothesis.measure.carried_bound()
    return Bound(hypothesis.at_least, hypothesis.at_most)


def decide(estimate: Estimate, bound: Bound) -> Truth:
    """The three-valued answer from interval and bound; nothing known is never upheld."""
    if estimate.missing is not None or estimate.interval is None:
        return "inconclusive"
    low, high = estimate.interval
    least = float("-inf") if bound.at_least is None else bound.at_least
    most = float("inf") if bound.at_most is None else bound.at_most
    if high < least or low > most:
        return "refuted"
    return "upheld" if least <= low and high <= most else "inconclusive"


def _estimate(hypothesis: Hypothesis, evidence: Evidence, times: RunTimes, bound: Bound) -> Estimate:
    measure = hypothesis.measure
    if not isinstance(measure, Estimator):
        return Estimate(None, missing=f"{measure.name} cannot be estimated")
    if not takes_window(measure) or (hypothesis.window is None and not measure.needs_window):
        return measure.estimate(View(evidence, times, None, bound))
    window = times.windows.get(hypothesis.window or "")
    if window is None:
        return Estimate(None, missing=f"the window {hypothesis.window} never opened")
    trimmed = window.after(hypothesis.grace)
    if not trimmed.spans:
        return Estimate(None, missing=f"the window {hypothesis.window} ended within its grace of {hypothesis.grace}")
    control = _control(hypothesis, times)
    if isinstance(control, str):
        return Estimate(None, missing=control)
    return measure.estimate(View(evidence, times, trimmed, bound, control))


def _control(hypothesis: Hypothesis, times: RunTimes) -> Control | str | None:
    """What the window is held against, None for nothing, or what is missing of it."""
    if hypothesis.against_load is not None:
        return Control(None, hypothesis.against_load, f"load {hypothesis.against_load}")
    if hypothesis.against is None:
        return None
    window = times.windows.get(hypothesis.against)
    return (
        f"the window {hypothesis.against} never opened"
        if window is None
        else Control(window, None, f"the {window.name}")
    )


def _tell(estimate: Estimate, bound: Bound, unit: str) -> str:
    """`99.33% (98.1% to 99.8%), wanted at least 99%: 298 of 300 requests`."""
    if estimate.missing is not None:
        return estimate.missing
    found = "-" if estimate.interval is None else say_found(estimate.value, estimate.interval, unit)
    return f"{found}, wanted {say_bound(bound, unit)}" + (f": {estimate.detail}" if estimate.detail else "")


def _settle(estimate: Estimate) -> str:
    if estimate.missing:
        return f"a run of which this cannot be said: {estimate.missing}"
    return "more data in this window: a higher rate or a longer window"


def _codes(evidence: Evidence, proofs: tuple[FaultProof, ...]) -> list[int]:
    """Exit codes beyond the verdict's own: stopped, failed, not reverted."""
    end = evidence.last("run_finished")
    codes = [NOT_REVERTED for proof in proofs if revert_failed(proof, evidence)]
    ending = CODE_OF_ENDING.get(str(end.fields.get("ending"))) if end else None
    return codes if ending is None else [*codes, ending]


def _why(truth: Truth, unmet: tuple[Precondition, ...], hypotheses: tuple[Judged, ...]) -> str:
    if unmet:
        more = f", and {len(unmet) - 1} more" if len(unmet) > 1 else ""
        return f"not met: {unmet[0].name} ({unmet[0].why}){more}"
    names = [h.name for h in hypotheses if h.verdict == truth]
    if truth == "upheld":
        return f"all {len(names)} hypotheses hold"
    return (
        f"{len(names)} of {len(hypotheses)} hypotheses {truth}: {', '.join(names)}" if hypotheses else "no hypothesis"
    )


def count_requests(evidence: Evidence) -> dict[str, int]:
    """Planned requests and how they ended."""
    outcomes = evidence.samples.finals.outcome
    return {
        "planned": sum(planned_requests(evidence).values()),
        **{name: int((outcomes == name).sum()) for name in OUTCOMES},
    }
