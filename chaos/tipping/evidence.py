"""A trace of the model as evidence of a run, so that the same judge looks at both.

Series have the names under which the bundled gateway tells them.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from chaos.journal.evidence import Evidence
from chaos.journal.samples import READINGS_SCHEMA, SAMPLES_SCHEMA
from chaos.journal.tables import ReadingTable, SampleTable
from chaos.tipping.model import GOOD, REFUSED, Floats, Trace
from chaos.verdict.view import View
from chaos.verdict.windows import RunTimes, Window

_OUTCOMES = ("abandoned", "good", "shed")
_GAUGES = (
    "gateway_queue_depth",
    'gateway_cache_requests_total{result="hit"}',
    'gateway_cache_requests_total{result="miss"}',
    'gateway_breaker_state{dependency="engine"}',
)


def view_of(trace: Trace) -> View:
    """What a judge may look at, of a run of the model."""
    begin, end = trace.trigger
    spans = {"baseline": (0.0, begin), "recovery": (end, trace.end_s)}
    windows = {name: Window(name, (span,)) for name, span in spans.items()}
    times = RunTimes(windows, 0.0, trace.end_s, {"trigger": (begin, end)}, {"trigger": end})
    return View(Evidence((), _samples(trace), _readings(trace)), times)


def _samples(trace: Trace) -> SampleTable:
    """Columns that a client of the model knows nothing of are null."""
    attempts = trace.attempts
    n = len(attempts)
    request = np.fromiter((a.request for a in attempts), np.int64, n)
    number = np.fromiter((a.number for a in attempts), np.int64, n)
    ending = np.fromiter((a.ending for a in attempts), np.int32, n)
    end = np.fromiter((a.end_s for a in attempts), np.float64, n)
    last = np.zeros(len(trace.due_s), dtype=np.int64)
    np.maximum.at(last, request, number)
    known: dict[str, pa.Array] = {
        "load": _words(np.zeros(n, dtype=np.int32), ("load",)),
        "request": pa.array(request),
        "attempt": pa.array(number),
        "final": pa.array(number == last[request]),
        "intended_s": pa.array(trace.due_s[request]),
        "sent_s": pa.array(np.fromiter((a.sent_s for a in attempts), np.float64, n)),
        "end_s": pa.array(end),
        "first_token_s": pa.array(end, mask=ending != GOOD),
        "outcome": _words(ending, _OUTCOMES),
        "status": pa.array(np.select([ending == GOOD, ending == REFUSED], [200, 503], 0)),
    }
    columns = [known.get(field.name, pa.nulls(n, field.type)).cast(field.type) for field in SAMPLES_SCHEMA]
    return SampleTable.from_arrow(pa.table(columns, schema=SAMPLES_SCHEMA))


def _words(codes: NDArray[np.int32], words: tuple[str, ...]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(words))


def _readings(trace: Trace) -> ReadingTable:
    """The line, the cache and the breaker, read once a second."""
    seconds = np.arange(0.0, trace.end_s + 1.5)
    looked = np.array([t for t, hit in trace.looks if hit]), np.array([t for t, hit in trace.looks if not hit])
    series: list[tuple[int, Floats]] = [(0, _waiting(trace, seconds))]
    if trace.looks:
        series += [(1 + i, np.searchsorted(times, seconds).astype(np.float64)) for i, times in enumerate(looked)]
    if trace.states:
        at = np.searchsorted(np.array([t for t, _ in trace.states]), seconds, side="right")
        states = np.array([0, *(state for _, state in trace.states)], dtype=np.float64)
        series.append((3, states[at]))
    codes = np.repeat(np.array([code for code, _ in series], dtype=np.int32), len(seconds))
    columns = [
        pa.array(np.tile(seconds, len(series))),
        _words(np.zeros(len(codes), dtype=np.int32), ("gateway",)),
        _words(codes, _GAUGES),
        pa.array(np.concatenate([values for _, values in series])),
    ]
    return ReadingTable.from_arrow(pa.table(columns, schema=READINGS_SCHEMA))


def _waiting(trace: Trace, seconds: Floats) -> Floats:
    """Sent and let in, less begun. Work that is never begun waits for ever."""
    inside = [a for a in trace.attempts if a.ending != REFUSED]
    sent = np.fromiter((a.sent_s for a in inside), np.float64, len(inside))
    begun = np.sort(np.fromiter((a.started_s for a in inside), np.float64, len(inside)))
    return (np.searchsorted(sent, seconds) - np.searchsorted(begun, seconds)).astype(np.float64)
