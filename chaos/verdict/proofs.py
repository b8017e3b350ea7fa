"""What the journal proves about each fault: when it came, who saw it, who undid it, who saw it go.

A fault counts as confirmed only if it was seen soon after the inject *and* was still there at a look shortly before the
revert: one that came late or went away by itself left users unharmed for an unknown time, and its window counts them
all the same. A fault that lived its whole time without that last look is not confirmed; one that was cut short had none
coming.
"""

from __future__ import annotations

from dataclasses import dataclass

from chaos.journal.evidence import Evidence
from chaos.journal.record import Record
from chaos.spec.model import Experiment, FaultEntry
from chaos.verdict.outcome import FaultProof
from chaos.verdict.sightings import Sightings


def prove(experiment: Experiment, evidence: Evidence) -> tuple[FaultProof, ...]:
    """One proof for each fault of the experiment, also for those that were never injected."""
    return tuple(_prove(entry, evidence) for entry in experiment.faults)


def revert_failed(proof: FaultProof, evidence: Evidence) -> bool:
    """Whether a revert was tried in vain and nobody has seen the fault go since."""
    tried = any(r.fields.get("step") == "revert" for r in _about(evidence, "fault_failed", proof.name))
    return tried and not proof.gone


@dataclass(frozen=True)
class _Undone:
    at: float
    by: str
    gone: bool


def _prove(entry: FaultEntry, evidence: Evidence) -> FaultProof:
    seen = _sightings(entry, evidence)
    doubt, injected, first = seen.doubt(), seen.injected, next(iter(seen.confirmed), None)
    undone = _undone(entry.name, evidence)
    fields = injected.fields if injected else {}
    return FaultProof(
        name=entry.name,
        kind=entry.kind,
        targets=tuple(fields.get("targets", ())),
        fidelity=str(fields.get("fidelity", entry.fault.fidelity)),
        injected_at=injected.t if injected else None,
        confirmed=doubt is None,
        observer=str(first.fields.get("observer", "")) if first else entry.fault.observer,
        what=doubt or (str(first.fields.get("what", "")) if first else ""),
        reverted_at=undone.at if undone else None,
        reverted_by=undone.by if undone else None,
        gone=bool(undone and undone.gone),
        lateness_s=injected.t - float(fields["planned"]) if injected and "planned" in fields else None,
        unseen_first_s=seen.unseen_first_s,
        unseen_last_s=seen.unseen_last_s,
    )


def _sightings(entry: FaultEntry, evidence: Evidence) -> Sightings:
    def about(kind: str) -> tuple[Record, ...]:
        return _about(evidence, kind, entry.name)

    injected, reverted = (next(iter(about(kind)), None) for kind in ("fault_injected", "fault_reverted"))
    return Sightings(entry, injected, about("fault_confirmed"), about("fault_still"), reverted)


def _about(evidence: Evidence, kind: str, fault: str) -> tuple[Record, ...]:
    return tuple(r for r in evidence.of_kind(kind) if r.fields.get("fault") == fault)


def _undone(fault: str, evidence: Evidence) -> _Undone | None:
    """The first revert in the journal; without one what the watchdog did for a dead harness."""
    reverted = next(iter(_about(evidence, "fault_reverted", fault)), None)
    gone = any(r.fields.get("seen") for r in _about(evidence, "fault_gone", fault))
    done = [line for line in evidence.watchdog if line.get("fault") == fault and line.get("ok")]
    gone = gone or any(line.get("step") == "gone" for line in done)
    if reverted:
        return _Undone(reverted.t, str(reverted.fields.get("by", "")), gone)
    by_watchdog = next((line for line in done if line.get("step") == "revert" and "t" in line), None)
    return _Undone(float(by_watchdog["t"]), "watchdog", gone) if by_watchdog else None
