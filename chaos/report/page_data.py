"""What the script of report.html draws from: one JSON value, thinned so that the page stays small however long the run.

The course of the run has at most MOST_STEPS steps; single requests are in it only where they speak for or against a
hypothesis. Times are seconds after the start of the load; -1 stands for a wait that never ended, null for nothing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from chaos.journal.tables import Floats, Integers
from chaos.report import trace_rows
from chaos.report.against import against
from chaos.report.course import Course, course_of, queues_of
from chaos.report.facts import Facts, found, timeline, wanted
from chaos.report.lanes import TONES, Lane, closed_throughout, lanes_of
from chaos.report.request_rows import ATTEMPT_COLUMNS, COLUMNS, all_rounded, request_rows, rounded
from chaos.spec.model import Hypothesis
from chaos.verdict.outcome import Judged

MOST_STEPS = 3000
_RANK = {"refuted": 0, "inconclusive": 1, "upheld": 2}


def page_data(facts: Facts) -> dict[str, Any]:
    """Everything that can be zoomed, sorted or opened. Plain JSON values."""
    rows: dict[int, int] = {}
    hypotheses = [
        _hypothesis(facts, hypothesis, judged, rows)
        for hypothesis, judged in zip(facts.experiment.hypotheses, facts.verdict.hypotheses, strict=True)
    ]
    course = course_of(facts, MOST_STEPS)
    requests = request_rows(facts, np.array(list(rows), dtype=np.int64))
    return {
        "course": None if course is None else _course(facts, course),
        "windows": _windows(facts),
        "faults": [[name, *_span(facts, begin, end)] for name, (begin, end) in facts.times.faults.items()],
        "moments": [[rounded(m.at, 3), m.tone, m.text] for m in timeline(facts)],
        "lanes": [_lane(lane) for lane in lanes_of(facts)],
        "closed": list(closed_throughout(facts)),
        "hypotheses": hypotheses,
        "columns": COLUMNS,
        "attempt_columns": ATTEMPT_COLUMNS,
        "requests": requests,
        "span_columns": trace_rows.COLUMNS,
        "traces": trace_rows.trace_rows(facts, _trace_ids(requests)),
    }


def embedded(data: Mapping[str, Any]) -> str:
    """The value as text that can stand inside a script element: no character in it can end or open one, and no line
    separator trips an old parser.
    """
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _course(facts: Facts, course: Course) -> dict[str, Any]:
    return {
        "step": course.step_s,
        "length": course.length_s,
        "outcomes": {name: counts.tolist() for name, counts in course.outcomes.items() if counts.any()},
        "served": all_rounded(course.served),
        "p50": _waits(course.p50),
        "p99": _waits(course.p99),
        "queues": {name: all_rounded(depth, 1) for name, depth in queues_of(facts, course).items()},
    }


def _waits(values: Floats) -> list[float | None]:
    return [-1 if math.isinf(value) else rounded(value) for value in values.tolist()]


def _windows(facts: Facts) -> list[list[Any]]:
    """The windows that no fault of the same name shades already, each of its spans apart."""
    return [
        [name, *_span(facts, begin, end)]
        for name, window in facts.times.windows.items()
        if name not in facts.times.faults and name not in ("gate", "fault")
        for begin, end in window.spans
    ]


def _span(facts: Facts, begin: float, end: float | None) -> tuple[float | None, float | None]:
    """A fault that was never put back lasts to the end of the load."""
    last = facts.times.load_end if end is None else end
    return rounded(begin - facts.zero, 3), rounded((begin if last is None else last) - facts.zero, 3)


def _lane(lane: Lane) -> dict[str, Any]:
    stays = [[rounded(s.begin, 3), rounded(s.end, 3), s.state, TONES.get(s.state, "warm")] for s in lane.stays]
    return {"name": lane.name, "stays": stays, "left_out": lane.left_out}


def _hypothesis(facts: Facts, hypothesis: Hypothesis, judged: Judged, rows: dict[int, int]) -> dict[str, Any]:
    """One hypothesis; the requests that speak against it are numbered through `rows`, in which each stands once."""
    found_against = against(facts, hypothesis, judged)
    window = facts.times.windows.get(hypothesis.window or "")
    return {
        "name": judged.name,
        "rank": _RANK[judged.verdict],
        "verdict": judged.verdict,
        "found": found(judged),
        "wanted": wanted(judged),
        "value": rounded(judged.value, 6),
        "bound": next(iter(judged.bound.values()), None),
        "measure": judged.measure,
        "why": judged.why,
        "settle": judged.to_settle,
        "records": judged.records,
        "window": None if window is None else list(_span(facts, window.start, window.end)),
        "told": found_against.told,
        "requests": _numbered(found_against.rows, rows),
    }


def _trace_ids(requests: list[list[Any]]) -> Iterable[str]:
    """Of the requests, then of their earlier attempts, which may have had traces of their own."""
    yield from (row[COLUMNS.index("trace")] for row in requests)
    for row in requests:
        yield from (attempt[ATTEMPT_COLUMNS.index("trace")] for attempt in row[COLUMNS.index("attempts")])


def _numbered(wanted_rows: Integers, rows: dict[int, int]) -> list[int]:
    ordered: Iterable[int] = wanted_rows.tolist()
    return [rows.setdefault(row, len(rows)) for row in ordered]
