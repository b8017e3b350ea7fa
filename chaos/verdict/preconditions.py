"""What must be true before any number means anything; what is not makes the run inconclusive.

The limits, and why: at least 99 % of the planned requests sent, because a smaller shortfall moves a ratio by less
than its interval at the sizes we ask for; a p99 lateness of at most 500 ms, half of the one-second slices that
recovery is measured in (latency counts from the intended send, so lateness can only make the stack look worse, never
better, and a shared CI machine stalls for a few hundred milliseconds now and then); at most 1 % indeterminate
requests, because those are left out of ratios and could carry a verdict either way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from chaos.journal.evidence import Evidence
from chaos.verdict.machine import machine
from chaos.verdict.outcome import FaultProof, Precondition
from chaos.verdict.statistics import quantile
from chaos.verdict.view import UNDECIDED, first_attempts

LEAST_SENT = 0.99
MOST_LATENESS_S = 0.5
MOST_INDETERMINATE = 0.01


def preconditions(evidence: Evidence, proofs: Iterable[FaultProof]) -> tuple[Precondition, ...]:
    """All preconditions in the order in which a person would ask for them."""
    return (
        journal_intact(evidence),
        gate_held(evidence),
        ran_to_its_end(evidence),
        books_balance(evidence),
        load_delivered(evidence),
        answers_known(evidence),
        *(check for proof in proofs for check in (fault_confirmed(proof), fault_gone(proof))),
    )


def journal_intact(evidence: Evidence) -> Precondition:
    """No byte was changed, nothing is cut off, nothing is missing."""
    why = "; ".join(str(problem) for problem in evidence.problems) or "every record follows from the one before, sealed"
    return Precondition("journal intact", not evidence.problems, why)


def gate_held(evidence: Evidence) -> Precondition:
    """Users were served before anything was broken."""
    gate = evidence.last("gate")
    if gate is None:
        return Precondition("gate held", held=False, why="nobody asked whether users are served")
    return Precondition("gate held", bool(gate.fields.get("held")), str(gate.fields.get("why", "")))


def ran_to_its_end(evidence: Evidence) -> Precondition:
    """Nobody and nothing ended the run early."""
    end = evidence.last("run_finished")
    if end is None:
        return Precondition("ran to its end", held=False, why="interrupted: the journal has no end of the run")
    ending, why = str(end.fields.get("ending")), str(end.fields.get("why") or "")
    told = f"{ending.replace('_', ' ')}: {why}".rstrip(": ")
    if ending == "completed":
        return Precondition("ran to its end", held=True, why="every step was carried out")
    return Precondition("ran to its end", ending == "decided" and evidence.first("decided") is not None, told)


def planned_requests(evidence: Evidence) -> Mapping[str, int]:
    """Planned requests by load, from the record that opened the load."""
    started = evidence.first("load_started")
    loads = started.fields.get("loads", ()) if started else ()
    return {str(load["name"]): int(load["planned"]) for load in loads}


def books_balance(evidence: Evidence) -> Precondition:
    """Every planned request ended in exactly one outcome: none lost, none counted twice."""
    planned, finals = planned_requests(evidence), evidence.samples.finals
    if not planned:
        return Precondition("books balance", held=False, why="no load was started")
    told = {name: finals.request[finals.load == name] for name in {*planned, *finals.load.distinct}}
    counts = {name: (planned.get(name, 0), len(rows), _distinct(rows)) for name, rows in sorted(told.items())}
    wrong = [
        f"{name}: {due} planned, {outcomes} outcomes of {requests} requests"
        for name, (due, outcomes, requests) in counts.items()
        if not due == outcomes == requests
    ]
    total = sum(planned.values())
    return Precondition("books balance", not wrong, "; ".join(wrong) or f"{total} planned, {total} outcomes")


def _distinct(numbers: NDArray[np.int64]) -> int:
    """How many different ones. Requests are numbered from 0, so counting each is quicker than sorting all."""
    dense = len(numbers) and numbers.min() >= 0 and numbers.max() < 4 * len(numbers)
    return int(np.count_nonzero(np.bincount(numbers))) if dense else len(set(numbers.tolist()))


def load_delivered(evidence: Evidence) -> Precondition:
    """The load was really sent, and on time."""
    samples, planned = evidence.samples, sum(planned_requests(evidence).values())
    first, decided = first_attempts(samples), evidence.first("decided")
    if decided is not None:  # what was due later was not sent on purpose
        due = samples.intended_s < decided.t
        first, planned = first & due, int((samples.final & due).sum())
    sent = int(first.sum())
    if not planned or not sent:
        return Precondition("load delivered", held=False, why="nothing was sent")
    late_s = quantile(np.asarray((samples.sent_s - samples.intended_s)[first]), 0.99)
    told = f"{sent} of {planned} requests sent, p99 {late_s * 1e3:.1f}ms late"
    missed = [
        *([f"at least {LEAST_SENT:.0%} sent"] if sent < LEAST_SENT * planned else []),
        *([f"a p99 of at most {MOST_LATENESS_S * 1e3:.0f}ms"] if late_s > MOST_LATENESS_S else []),
    ]
    host = machine(evidence) if missed else None
    why = f"{told}, wanted {' and '.join(missed)}" if missed else told
    return Precondition("load delivered", not missed, f"{why} (the machine: {host})" if host else why)


def answers_known(evidence: Evidence) -> Precondition:
    """The client knows how nearly every request ended."""
    samples, decided = evidence.samples, evidence.first("decided")
    if decided is not None:  # what was in flight then was cut off by us
        samples = samples.where(np.arange(len(samples)) < int(decided.fields.get("samples", 0)))
    finals = samples.finals
    unknown = int((finals.outcome == UNDECIDED).sum()) if len(finals) else 0
    held = unknown <= MOST_INDETERMINATE * len(finals)
    told = f"{unknown} of {len(finals)} requests indeterminate"
    return Precondition("answers known", held, told if held else f"{told}, wanted at most {MOST_INDETERMINATE:.0%}")


def fault_confirmed(proof: FaultProof) -> Precondition:
    """Somebody else than the fault itself saw it bite, from its start to its end."""
    if proof.injected_at is None:
        return Precondition(f"fault {proof.name} confirmed", held=False, why="it was never injected")
    first_s, last_s = proof.unseen_first_s, proof.unseen_last_s
    known = proof.confirmed and first_s is not None and last_s is not None
    span = f"; seen from {first_s:.1f}s after its inject to {last_s:.1f}s before its revert" if known else ""
    return Precondition(f"fault {proof.name} confirmed", proof.confirmed, proof.what + span)


def fault_gone(proof: FaultProof) -> Precondition:
    """Somebody saw the target work again."""
    by = f"reverted by {proof.reverted_by}" if proof.reverted_by else "not reverted"
    why = f"{by}, seen to be gone" if proof.gone else f"{by}, not seen to be gone"
    return Precondition(f"fault {proof.name} gone", proof.gone or proof.injected_at is None, why)
