"""The evidence as tables for SQL, the same whatever stack was attacked.

    samples   one row an attempt, as in samples.arrows, with `ttft_s` and `e2e_s` from the intended send
    requests  the final attempt of each request
    readings  one row a value of a series: t, target, series, value
    events    what the stack itself told: t, journal (its line), name, source, dependency, replica, reason, fields
    spans     every hop's own record of a call, as in spans.arrows; empty where the stack keeps none
    faults    name, kind, injected_s, reverted_s, confirmed, gone
    windows   name, start_s, end_s: one row a span

Seen through a window, the first five hold what falls into it: samples and requests by when they were due. Times are
seconds since the run began.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from chaos.journal.evidence import Evidence
from chaos.journal.record import Record
from chaos.journal.tables import SampleTable
from chaos.verdict.events import happened_at
from chaos.verdict.view import ANSWERED, Mask, View, among

_TEXT, _NUMBER, _COUNT, _YES = pa.string(), pa.float64(), pa.int64(), pa.bool_()
_ATTEMPT = [
    ("load", _TEXT),
    ("request", _COUNT),
    ("attempt", _COUNT),
    ("final", _YES),
    ("intended_s", _NUMBER),
    ("sent_s", _NUMBER),
    ("first_token_s", _NUMBER),
    ("end_s", _NUMBER),
    ("ttft_s", _NUMBER),
    ("e2e_s", _NUMBER),
    ("outcome", _TEXT),
    ("why", _TEXT),
    ("status", _COUNT),
    ("served_by", _TEXT),
    ("degraded", _TEXT),
    ("tokens", _COUNT),
    ("answer_ok", _YES),
    ("trace_id", _TEXT),
    ("leaked", _TEXT),
]
_WORDS = ("name", "source", "dependency", "replica", "reason")
_CALL = ("trace_id", "span_id", "parent_id", "service", "kind", "name", "peer", "outcome")
_CALL_NUMBERS = [
    ("start_s", _NUMBER),
    ("end_s", _NUMBER),
    ("attempt", _COUNT),
    ("prompt_tokens", _COUNT),
    ("output_tokens", _COUNT),
]
_FAULT = [("name", _TEXT), ("kind", _TEXT), ("injected_s", _NUMBER), ("reverted_s", _NUMBER)]

SCHEMAS: Mapping[str, pa.Schema] = {
    "samples": pa.schema(_ATTEMPT),
    "requests": pa.schema(_ATTEMPT),
    "readings": pa.schema([("t", _NUMBER), ("target", _TEXT), ("series", _TEXT), ("value", _NUMBER)]),
    "events": pa.schema([("t", _NUMBER), ("journal", _COUNT), *((key, _TEXT) for key in (*_WORDS, "fields"))]),
    "spans": pa.schema([*((key, _TEXT) for key in _CALL), *_CALL_NUMBERS]),
    "faults": pa.schema([*_FAULT, ("confirmed", _YES), ("gone", _YES)]),
    "windows": pa.schema([("name", _TEXT), ("start_s", _NUMBER), ("end_s", _NUMBER)]),
}
"""Every table with its columns; what never happened is NULL."""


def sheet(name: str, view: View) -> pa.Table:
    """One of the tables, seen through the view's window."""
    return _MAKE[name](view)


def empty(name: str) -> pa.Table:
    """The same table of a run in which nothing happened, to try a query on."""
    return SCHEMAS[name].empty_table()


def _attempts(view: View, rows: Mask) -> pa.Table:
    samples = view.evidence.samples.where(rows)
    columns = {**_as_they_are(samples), **_waits(samples)}
    arrays = [pa.array(columns[field.name], field.type, from_pandas=True) for field in SCHEMAS["samples"]]
    return pa.Table.from_arrays(arrays, schema=SCHEMAS["samples"])


def _as_they_are(samples: SampleTable) -> dict[str, Any]:
    texts = ("load", "outcome", "why", "served_by", "degraded", "leaked")
    plain = ("request", "attempt", "final", "intended_s", "sent_s", "first_token_s", "end_s", "status", "tokens")
    known = np.array([{1: True, 0: False}.get(int(each)) for each in samples.answer_ok], dtype=object)
    return {
        **{key: getattr(samples, key) for key in (*texts, *plain)},
        "answer_ok": known,
        "trace_id": samples.trace_id.combine_chunks(),
    }


def _waits(samples: SampleTable) -> dict[str, Any]:
    """An answer that never came whole has no `e2e_s`."""
    whole = among(samples.outcome, ANSWERED)
    return {
        "ttft_s": samples.first_token_s - samples.intended_s,
        "e2e_s": np.where(whole, samples.end_s - samples.intended_s, np.nan),
    }


def _samples(view: View) -> pa.Table:
    return _attempts(view, view.attempts())


def _requests(view: View) -> pa.Table:
    return _attempts(view, view.requests())


def _readings(view: View) -> pa.Table:
    readings = view.evidence.readings
    rows = np.ones(len(readings), dtype=np.bool_) if view.window is None else view.window.holds(readings.t)
    texts = readings.target[rows], readings.series[rows]
    return pa.Table.from_arrays(
        [pa.array(readings.t[rows]), *(pa.array(text, _TEXT) for text in texts), pa.array(readings.value[rows])],
        schema=SCHEMAS["readings"],
    )


def _events(view: View) -> pa.Table:
    told = [record for record in view.evidence.of_kind("event") if _inside(view, happened_at(record))]
    return _from_rows("events", map(_event, told))


def _event(record: Record) -> tuple[Any, ...]:
    fields = record.fields
    words = (fields.get(key) for key in _WORDS)
    texts = (None if word is None else str(word) for word in words)
    return (happened_at(record), record.n, *texts, json.dumps(dict(fields), default=str))


def _inside(view: View, t: float) -> bool:
    return view.window is None or bool(view.window.holds(np.array([t]))[0])


def _spans(view: View) -> pa.Table:
    spans = view.evidence.spans
    rows = np.ones(len(spans), dtype=np.bool_) if view.window is None else view.window.holds(spans.start_s)
    kept, unknown = pa.array(rows), {"prompt_tokens", "output_tokens"}
    columns = []
    for field in SCHEMAS["spans"]:
        column = getattr(spans, field.name)
        if isinstance(column, pa.ChunkedArray):
            columns.append(column.filter(kept).combine_chunks())
        else:
            hidden = column[rows] < 0 if field.name in unknown else None
            columns.append(pa.array(column[rows], field.type, mask=hidden))
    return pa.Table.from_arrays(columns, schema=SCHEMAS["spans"])


def _faults(view: View) -> pa.Table:
    def seen(kind: str, fault: str) -> bool:
        return any(r.fields.get("fault") == fault and r.fields.get("seen") for r in view.evidence.of_kind(kind))

    kinds = _kinds(view.evidence)
    return _from_rows(
        "faults",
        (
            (name, kinds.get(name), *span, seen("fault_confirmed", name), seen("fault_gone", name))
            for name, span in view.times.faults.items()
        ),
    )


def _kinds(evidence: Evidence) -> dict[str, str]:
    return {str(r.fields["fault"]): str(r.fields.get("fault_kind", "")) for r in evidence.of_kind("fault_injected")}


def _windows(view: View) -> pa.Table:
    windows = view.times.windows.values()
    return _from_rows("windows", ((window.name, *span) for window in windows for span in window.spans))


def _from_rows(name: str, rows: Iterable[tuple[Any, ...]]) -> pa.Table:
    listed, schema = list(rows), SCHEMAS[name]
    columns = [pa.array([row[i] for row in listed], field.type) for i, field in enumerate(schema)]
    return pa.Table.from_arrays(columns, schema=schema)


_MAKE: Mapping[str, Callable[[View], pa.Table]] = {
    "samples": _samples,
    "requests": _requests,
    "readings": _readings,
    "events": _events,
    "spans": _spans,
    "faults": _faults,
    "windows": _windows,
}
