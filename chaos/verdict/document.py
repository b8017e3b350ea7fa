"""verdict.json, the shape that other programs read: additions are free, a changed meaning raises `version`.

JSON knows no infinity, so `null` stands for "no limit" at the upper end of an interval and for a value that never
came (a p99 of users who waited in vain). Beyond the promised keys: `title`, `why`, `notes`, `windows`, and for
hypotheses `unit` and `records` (what the answer rests on, in words), for faults `what`, `reverted_by`, `lateness_s`,
`unseen_first_s`, `unseen_last_s`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from chaos.verdict.outcome import FaultProof, Judged, Precondition, Verdict

VERSION = 1


class NotAVerdict(ValueError):
    """A document that is not a verdict of a version we read."""


def to_json(verdict: Verdict) -> dict[str, Any]:
    """The document as plain JSON values."""
    return {
        "version": VERSION,
        "run": verdict.run,
        "experiment": verdict.experiment,
        "title": verdict.title,
        "fingerprint": verdict.fingerprint,
        "seed": verdict.seed,
        "profile": verdict.profile,
        "weaknesses": list(verdict.weaknesses),
        "verdict": verdict.verdict,
        "exit_code": verdict.exit_code,
        "why": verdict.why,
        "preconditions": [{"name": c.name, "held": c.held, "why": c.why} for c in verdict.preconditions],
        "faults": [_fault(fault) for fault in verdict.faults],
        "hypotheses": [_hypothesis(judged) for judged in verdict.hypotheses],
        "requests": dict(verdict.requests),
        "notes": list(verdict.notes),
        **verdict.extra,
    }


def to_text(verdict: Verdict) -> str:
    """The document as it stands in verdict.json."""
    return json.dumps(to_json(verdict), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def from_json(document: Mapping[str, Any]) -> Verdict:
    """Read a document back; unknown keys are kept in `extra`. Raises NotAVerdict."""
    if document.get("version") != VERSION:
        raise NotAVerdict(f"verdict version {document.get('version')!r}, this program reads {VERSION}")
    try:
        return _verdict(document)
    except (KeyError, TypeError, ValueError) as error:
        raise NotAVerdict(f"not a verdict: {type(error).__name__}: {error}") from error


def _verdict(document: Mapping[str, Any]) -> Verdict:
    known = to_json(_EMPTY).keys()
    return Verdict(
        run=document["run"],
        experiment=document["experiment"],
        title=document.get("title", ""),
        fingerprint=document["fingerprint"],
        seed=int(document["seed"]),
        profile=document["profile"],
        weaknesses=tuple(document["weaknesses"]),
        verdict=document["verdict"],
        exit_code=int(document["exit_code"]),
        why=document.get("why", ""),
        preconditions=tuple(Precondition(c["name"], c["held"], c["why"]) for c in document["preconditions"]),
        faults=tuple(_read_fault(fault) for fault in document["faults"]),
        hypotheses=tuple(_read_hypothesis(judged) for judged in document["hypotheses"]),
        requests={name: int(count) for name, count in document["requests"].items()},
        notes=tuple(document.get("notes", ())),
        extra={key: value for key, value in document.items() if key not in known},
    )


_EMPTY = Verdict("", "", "", "", 0, "", (), "inconclusive", 2, "", (), (), ())


def finite(value: float | None) -> float | None:
    """As JSON has it: None for what never came and for an open side."""
    return None if value is None or not math.isfinite(value) else value


def _hypothesis(judged: Judged) -> dict[str, Any]:
    return {
        "name": judged.name,
        "verdict": judged.verdict,
        "measure": judged.measure,
        "unit": judged.unit,
        "window": judged.window,
        "value": finite(judged.value),
        "interval": [finite(side) for side in judged.interval] if judged.interval else None,
        "n": judged.n,
        "bound": dict(judged.bound),
        "why": judged.why,
        "to_settle": judged.to_settle,
        "records": list(judged.records),
    }


def _read_hypothesis(record: Mapping[str, Any]) -> Judged:
    sides = record["interval"]
    return Judged(
        name=record["name"],
        verdict=record["verdict"],
        measure=record["measure"],
        unit=record.get("unit", "factor"),
        window=record["window"],
        value=record["value"],
        interval=(_open(sides[0]), _open(sides[1])) if sides else None,
        n=int(record["n"]),
        bound=dict(record["bound"]),
        why=record["why"],
        to_settle=record["to_settle"],
        records=tuple(record.get("records", ())),
    )


def _open(side: float | None) -> float:
    return math.inf if side is None else float(side)


def _fault(proof: FaultProof) -> dict[str, Any]:
    return {
        "name": proof.name,
        "kind": proof.kind,
        "targets": list(proof.targets),
        "fidelity": proof.fidelity,
        "injected_at": proof.injected_at,
        "confirmed": proof.confirmed,
        "observer": proof.observer,
        "what": proof.what,
        "reverted_at": proof.reverted_at,
        "reverted_by": proof.reverted_by,
        "gone": proof.gone,
        "lateness_s": proof.lateness_s,
        "unseen_first_s": proof.unseen_first_s,
        "unseen_last_s": proof.unseen_last_s,
    }


def _read_fault(record: Mapping[str, Any]) -> FaultProof:
    return FaultProof(
        name=record["name"],
        kind=record["kind"],
        targets=tuple(record["targets"]),
        fidelity=record["fidelity"],
        injected_at=record["injected_at"],
        confirmed=record["confirmed"],
        observer=record["observer"],
        what=record.get("what", ""),
        reverted_at=record["reverted_at"],
        reverted_by=record.get("reverted_by"),
        gone=record["gone"],
        lateness_s=record.get("lateness_s"),
        unseen_first_s=record.get("unseen_first_s"),
        unseen_last_s=record.get("unseen_last_s"),
    )
