"""The course of a run for a terminal: one line of blocks a signal, all over the same seconds.

requests due  ▅▅▆▅▆▅▅▆▅▅▆▅▅▅  up to 23/s
served        █████▅▅▅▅▅████  75% to 100%
fault outage       ━━━━━
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from chaos.journal.tables import Floats
from chaos.report.course import Course, course_of
from chaos.report.facts import Facts
from chaos.report.lanes import Lane, lanes_of
from chaos.report.plain import plain
from chaos.verdict.wording import say

SPARKLINES_NOTE = "One column a step of time; × is a wait that never ended, a gap means that nobody asked."
WIDTH = 60
_BLOCKS = "▁▂▃▄▅▆▇█"
_NEVER, _NOTHING, _FAULT = "×", " ", "━"
_STATES = {"open": "█", "ejected": "█", "on": "█", "low": "█", "half-open": "▄"}

Line = tuple[str, str, str]


def sparklines(facts: Facts) -> str:
    """The lines under each other, labels and numbers aligned; empty where there was no second of load."""
    course = course_of(facts, WIDTH)
    if course is None:
        return ""
    lines: list[Line] = [*_signals(course), *_faults(facts, course), *(_lane(lane, course) for lane in lanes_of(facts))]
    lines.append(("", _axis(course), ""))
    width = max(len(label) for label, _, _ in lines)
    return "\n".join(f"{label:<{width}}  {drawn}  {told}".rstrip() for label, drawn, told in lines)


def sparkline(values: Sequence[float], most: float) -> str:
    """Blocks from 0 to `most`; a wait without end is a cross, nothing asked is a gap."""
    return "".join(_block(value, most) for value in values)


def _block(value: float, most: float) -> str:
    if math.isnan(value):
        return _NOTHING
    if math.isinf(value):
        return _NEVER
    share = min(max(value / most, 0.0), 1.0) if most > 0 else 0.0
    return _BLOCKS[min(int(share * len(_BLOCKS)), len(_BLOCKS) - 1)]


def _signals(course: Course) -> Iterable[Line]:
    due, per = course.due.astype(np.float64), "s" if course.step_s == 1 else f"{course.step_s}s"
    yield "requests due", sparkline(due.tolist(), due.max()), f"up to {int(due.max())}/{per}"
    yield "share served", sparkline(course.served.tolist(), 1.0), _range(course.served, "ratio")
    both = np.concatenate((course.p50, course.p99))
    longest = float(both[np.isfinite(both)].max(initial=0.0))
    for name, waits in (("TTFT p50", course.p50), ("TTFT p99", course.p99)):
        yield name, sparkline(waits.tolist(), longest), _range(waits, "duration")
    for outcome in ("degraded", "shed", "late", "failed"):
        counts = course.outcomes[outcome].astype(np.float64)
        if counts.any():
            most = int(counts.max())
            yield outcome, "".join(" " if n == 0 else _block(n, most) for n in counts), f"up to {most}/{per}"


def _range(values: Floats, unit: str) -> str:
    known = values[~np.isnan(values)]
    return f"{say(float(known.min()), unit)} to {say(float(known.max()), unit)}" if len(known) else "-"


def _faults(facts: Facts, course: Course) -> Iterable[Line]:
    for name, (begin, end) in facts.times.faults.items():
        span = (begin - facts.zero, math.inf if end is None else end - facts.zero)
        yield f"fault {plain(name)}", _drawn_where(course, [(*span, _FAULT)]), ""


def _lane(lane: Lane, course: Course) -> Line:
    stays = [(stay.begin, stay.end, _STATES.get(stay.state, _NOTHING)) for stay in lane.stays]
    worst = next((state for state in _STATES if any(stay.state == state for stay in lane.stays)), "")
    return plain(lane.name), _drawn_where(course, stays), f"{_STATES[worst]} {worst}" if worst else ""


def _drawn_where(course: Course, spans: Iterable[tuple[float, float, str]]) -> str:
    """A mark in every step that a span touches; the later and the worse one covers the other."""
    steps = [_NOTHING] * len(course.served)
    for begin, end, mark in spans:
        for step in range(max(0, int(begin / course.step_s)), len(steps)):
            if step * course.step_s >= end:
                break
            if mark != _NOTHING and steps[step] != "█":
                steps[step] = mark
    return "".join(steps)


def _axis(course: Course) -> str:
    end = f"{course.length_s}s"
    return "0s" + end.rjust(max(len(end), len(course.served) - 2))
