"""The trace document: the run is one trace, its windows are spans in it, its faults are spans in those.

    experiment ──┬─ gate   ├─ baseline   ├─ fault ─┬─ outage (process_kill)   ├─ recovery   └─ settled
                 └ hypotheses as events     └ the stack's own events    └ injected, seen, gone

Ids come from the run's own id: exported twice, it is the same trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from chaos.journal.record import Record
from chaos.report.facts import Facts
from chaos.report.otlp import Json, Value, attributes, hexadecimal, nanos, resource, scope
from chaos.verdict.events import happened_at
from chaos.verdict.outcome import STOPPED, FaultProof, Judged, Verdict
from chaos.verdict.windows import Span

WINDOWS = ("gate", "baseline", "fault", "recovery", "settled")
MOST_EVENTS = 128  # what SDKs keep of one span

_INTERNAL, _OK, _ERROR = 1, 1, 2
_SINGLE_CALLS = frozenset({"tool_call", "side_effect"})
_FAULT_RECORDS = ("fault_confirmed", "fault_still", "fault_gone", "fault_failed")

Event = tuple[float, str, Mapping[str, Value | None]]


@dataclass(frozen=True)
class _Part:
    """What becomes a span: `path` names it within the run, `above` the part that it belongs to."""

    path: tuple[str, ...]
    name: str
    span: Span
    known: Mapping[str, Value | None]
    events: Sequence[Event]
    above: tuple[str, ...] | None = ("run",)


def trace_document(facts: Facts) -> Json:
    """An ExportTraceServiceRequest. Without the time at which the run began it has no spans."""
    spans = list(_spans(facts)) if facts.evidence.header.get("wall") is not None else []
    one_scope = {"scope": scope(), "spans": spans}
    return {"resourceSpans": [{"resource": resource(facts), "scopeSpans": [one_scope]}]}


def _spans(facts: Facts) -> Iterator[Json]:
    ends = facts.evidence.records[-1].t
    told = [(happened_at(r), *_told(r)) for r in facts.evidence.of_kind("event") if _is_news(r)]
    windows = [(name, n, span) for name in WINDOWS for n, span in enumerate(_stretches(facts, name))]
    inside = {(name, n): [event for event in told if _within(event[0], span)] for name, n, span in windows}
    outside = [event for event in told if not any(event in held for held in inside.values())]
    yield _root(facts, ends, outside)
    for name, n, span in windows:
        yield _span(facts, _Part((name, str(n)), name, span, {"brownout.window": name}, inside[name, n]))
    for proof in facts.verdict.faults:
        if proof.injected_at is not None:
            yield _fault(facts, proof, proof.injected_at, ends)


def _stretches(facts: Facts, name: str) -> tuple[Span, ...]:
    window = facts.times.windows.get(name)
    return window.spans if window else ()


def _within(t: float, span: Span) -> bool:
    return span[0] <= t < span[1]


def _is_news(record: Record) -> bool:
    """Records of single calls are evidence for the measures, not news."""
    return record.fields.get("name") not in _SINGLE_CALLS


def _told(record: Record) -> tuple[str, Mapping[str, Value | None]]:
    own = {key: value for key, value in record.fields.items() if key not in ("name", "at") and value is not None}
    words = {
        f"brownout.event.{key}": value if isinstance(value, int | float) else str(value) for key, value in own.items()
    }
    return str(record.fields.get("name", "event")), words


def _root(facts: Facts, ends: float, told: list[Event]) -> Json:
    verdict = facts.verdict
    known: dict[str, Value | None] = {
        "test.suite.name": verdict.experiment,
        "test.suite.run.status": _suite_status(verdict),
        "brownout.title": verdict.title,
        "brownout.verdict": verdict.verdict,
        "brownout.exit_code": verdict.exit_code,
        "brownout.run_dir": facts.run_dir,
    }
    judged = [(ends, "brownout.hypothesis", _judged(each)) for each in verdict.hypotheses]
    happened = [
        (r.t, r.kind, {f"brownout.{key}": str(value) for key, value in r.fields.items()})
        for r in facts.evidence.of_kind("guard_tripped", "decided", "stop_requested")
    ]
    events = [*judged, *happened, *told]
    span = _span(facts, _Part(("run",), verdict.experiment, (0.0, ends), known, events, above=None))
    upheld = verdict.verdict == "upheld" and verdict.exit_code == 0
    said = {} if upheld else {"message": f"{verdict.verdict}: {verdict.why}"}
    return {**span, "status": {"code": _OK if upheld else _ERROR, **said}}


def _suite_status(verdict: Verdict) -> str:
    """The convention's word where it has one; it has none for what is not known."""
    if verdict.exit_code == STOPPED:
        return "aborted"
    return {"upheld": "success", "refuted": "failure"}.get(verdict.verdict, verdict.verdict)


def _judged(judged: Judged) -> Mapping[str, Value | None]:
    low, high = judged.interval or (None, None)
    return {
        "test.case.name": judged.name,
        "test.case.result.status": {"upheld": "pass", "refuted": "fail"}.get(judged.verdict, judged.verdict),
        "brownout.measure": judged.measure,
        "brownout.window": judged.window,
        "brownout.value": judged.value,
        "brownout.low": low,
        "brownout.high": high,
        "brownout.samples": judged.n,
        "brownout.why": judged.why,
        "brownout.to_settle": judged.to_settle,
    }


def _fault(facts: Facts, proof: FaultProof, began: float, ends: float) -> Json:
    """From its inject to its revert; one that never came back lasts as long as the run."""
    known: dict[str, Value | None] = {
        "brownout.fault.name": proof.name,
        "brownout.fault.kind": proof.kind,
        "brownout.fault.targets": list(proof.targets),
        "brownout.fault.fidelity": proof.fidelity,
        "brownout.fault.confirmed": proof.confirmed,
        "brownout.fault.gone": proof.gone,
        "brownout.fault.observer": proof.observer,
        "brownout.fault.reverted_by": proof.reverted_by,
    }
    looks: list[Event] = [
        (r.t, r.kind, {f"brownout.{key}": str(r.fields[key]) for key in ("seen", "what", "why") if key in r.fields})
        for r in facts.evidence.of_kind(*_FAULT_RECORDS)
        if r.fields.get("fault") == proof.name
    ]
    stop = ends if proof.reverted_at is None else proof.reverted_at
    parent = next((n for n, span in enumerate(_stretches(facts, "fault")) if _within(began, span)), None)
    above = ("run",) if parent is None else ("fault", str(parent))
    name = f"{proof.name} ({proof.kind})"
    span = _span(facts, _Part(("injected", proof.name), name, (began, stop), known, looks, above))
    proved = proof.confirmed and proof.gone
    said = (
        {} if proved else {"message": f"not confirmed: {proof.what}" if not proof.confirmed else "not seen to be gone"}
    )
    return {**span, "status": {"code": _OK if proved else _ERROR, **said}}


def _span(facts: Facts, part: _Part) -> Json:
    """One span; of very many events the first are kept and the others counted, as an SDK does."""
    run = facts.verdict.run
    parent = {"parentSpanId": hexadecimal(16, run, *part.above)} if part.above else {}
    told = sorted(part.events, key=lambda event: event[0])
    dropped = {"droppedEventsCount": len(told) - MOST_EVENTS} if len(told) > MOST_EVENTS else {}
    return {
        "traceId": hexadecimal(32, run),
        "spanId": hexadecimal(16, run, *part.path),
        **parent,
        "name": part.name,
        "kind": _INTERNAL,
        "startTimeUnixNano": nanos(facts, part.span[0]),
        "endTimeUnixNano": nanos(facts, part.span[1]),
        "attributes": attributes(part.known),
        "events": [
            {"timeUnixNano": nanos(facts, t), "name": what, "attributes": attributes(fields)}
            for t, what, fields in told[:MOST_EVENTS]
        ],
        **dropped,
        "status": {},
    }
