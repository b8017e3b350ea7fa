"""The run as one picture: arrivals by their outcome, success, time to first token, and the states of breakers, over
the same seconds; faults are shaded, events marked.

Plain SVG without scripts or outside references, as forges show it beside report.md. Its own colours follow the
reader's light or dark setting; inside report.html the page gives the colours.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape

import numpy as np

from chaos.journal.record import OUTCOMES
from chaos.journal.tables import Floats
from chaos.report.course import Course, course_of
from chaos.report.facts import Facts, timeline
from chaos.report.lanes import TONES, Lane, lanes_of
from chaos.verdict.wording import say

TIMELINE_FILE = "timeline.svg"
PICTURE_LABEL = "arrivals, success, time to first token and breakers over the run"
WIDTH, LEFT, RIGHT, TOP, PANEL, GAP, LANE = 960, 64, 12, 54, 92, 30, 30
MOST_STEPS = 450
_PLOT = WIDTH - LEFT - RIGHT
_LANES_TOP = TOP + 3 * (PANEL + GAP)
_NAMED_WINDOWS = ("baseline", "recovery", "settled")
_MOST_LANES = 12

STYLE = """
text{font:12px system-ui,sans-serif}
.ink{fill:#24292f}.hot{fill:#cf222e}.edge{stroke:#8c959f;stroke-width:.7}.faint{stroke:#d0d7de;fill:none}
.harm{fill:#cf222e;opacity:.13}.line{fill:none;stroke-width:1.8}.mark{stroke:#8250df}
.served{stroke:#1a7f37}.p50{stroke:#0969da}.p99{stroke:#9a6700}.p50text{fill:#0969da}.p99text{fill:#9a6700}
.calm{fill:#1a7f37;opacity:.3}.warm{fill:#bf8700}.alarm{fill:#cf222e}
.o-good{fill:#8c959f}.o-degraded{fill:#e69f00}.o-late{fill:#cc79a7}.o-shed{fill:#56b4e9}.o-failed{fill:#d55e00}
.o-indeterminate{fill:#57606a}.o-abandoned{fill:#7d4e00}
@media (prefers-color-scheme:dark){.ink{fill:#e6edf3}.hot{fill:#ff7b72}.p50text{fill:#58a6ff}.p99text{fill:#d29922}
.faint{stroke:#30363d}.harm{fill:#ff7b72;opacity:.2}.alarm{fill:#ff7b72}
.served{stroke:#3fb950}.p50{stroke:#58a6ff}.p99{stroke:#d29922}.mark{stroke:#bc8cff}}
"""


def to_svg(facts: Facts, *, styled: bool = True) -> str:
    """The picture; a run without load gives a picture that says so. Without `styled` it has no colours of its own."""
    course = course_of(facts, MOST_STEPS)
    if course is None:
        nothing = '<text class="ink" x="12" y="34">No load was sent, so there is nothing to draw.</text>'
        return _frame(60, nothing, styled=styled)
    lanes = lanes_of(facts)[:_MOST_LANES]
    bottom = _LANES_TOP + LANE * len(lanes) - (GAP - 8 if not lanes else 0)
    ceiling = _ceiling(np.concatenate((course.p50, course.p99)))
    waits = [_line(course.p50, ceiling, 2, "p50"), _line(course.p99, ceiling, 2, "p99")]
    body = [
        *_shades(facts, course, bottom),
        *_names(facts, course),
        *_panel(0, f"requests due in {_each(course)}: {_legend(course)}", _bars(course), (str(course.due.max()), "0")),
        *_panel(1, "share served", [_line(course.served, 1.0, 1, "served")], ("100%", "0%")),
        *_panel(2, _WAITS, waits, (say(ceiling, "duration"), "0s")),
        *(shape for number, lane in enumerate(lanes) for shape in _lane(lane, number, course)),
        *_marks(facts, course, bottom),
        *_axis(course, bottom),
    ]
    return _frame(bottom + 40, "\n".join(body), styled=styled)


_WAITS = (
    'time to first token: <tspan class="p50text">median (p50)</tspan>, <tspan class="p99text">slowest 1% (p99)</tspan>'
)


def _each(course: Course) -> str:
    return "each second" if course.step_s == 1 else f"each {course.step_s}s"


def _legend(course: Course) -> str:
    """Coloured squares with the names of the outcomes that there were."""
    there = [name for name in OUTCOMES if course.outcomes[name].any()]
    return ", ".join(f'<tspan class="o-{name}">&#9632;</tspan> {name}' for name in there)


def _frame(height: int, body: str, *, styled: bool) -> str:
    style = f"<style>{STYLE}</style>\n" if styled else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="plot still" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="{PICTURE_LABEL}">\n{style}{body}\n</svg>\n'
    )


def _ceiling(values: Floats) -> float:
    """Top of the latency panel: the next round number above the largest finite value; waits without an end touch the
    top.
    """
    finite = values[np.isfinite(values)]
    most = max(0.05, float(finite.max())) if len(finite) else 1.0
    step = 10.0 ** math.floor(math.log10(most))
    return next(step * n for n in (1, 2, 3, 5, 10) if step * n >= most * (1 - 1e-9))


def _x(at: float, course: Course) -> float:
    return LEFT + _PLOT * min(max(at, 0.0), course.length_s) / course.length_s


def _y(share: float, panel: int) -> float:
    return TOP + panel * (PANEL + GAP) + PANEL * (1 - min(max(share, 0.0), 1.0))


def _panel(number: int, title: str, shapes: Iterable[str], ends: tuple[str, str]) -> list[str]:
    """`title` is markup of our own making."""
    y = TOP + number * (PANEL + GAP)
    return [
        f'<rect class="faint" x="{LEFT}" y="{y}" width="{_PLOT}" height="{PANEL}"/>',
        f'<text class="ink" x="{LEFT}" y="{y - 6}">{title}</text>',
        f'<text class="ink" x="{LEFT - 6}" y="{y + 10}" text-anchor="end">{escape(ends[0])}</text>',
        f'<text class="ink" x="{LEFT - 6}" y="{y + PANEL}" text-anchor="end">{escape(ends[1])}</text>',
        *shapes,
    ]


def _bars(course: Course) -> list[str]:
    """Outcomes stacked on each other, one path an outcome."""
    most, below = max(1, int(course.due.max())), np.zeros(len(course.served))
    width = max(0.5, _PLOT / len(course.served) - 1)
    paths = []
    for name, counts in course.outcomes.items():
        bars = [
            f"M{_x(i * course.step_s, course):.1f} {_y((below[i] + n) / most, 0):.1f}"
            f"h{width:.1f}v{PANEL * n / most:.1f}h-{width:.1f}z"
            for i, n in enumerate(counts.tolist())
            if n
        ]
        below += counts
        paths += [f'<path class="o-{name}" d="{"".join(bars)}"/>'] if bars else []
    return paths


def _line(values: Floats, ceiling: float, panel: int, kind: str) -> str:
    """A line through the middle of each step; a step without requests leaves a gap."""
    path, pen_down = [], False
    for i, value in enumerate(values.tolist()):
        if math.isnan(value):
            pen_down = False
            continue
        x = LEFT + _PLOT * (i + 0.5) / len(values)
        path.append(f"{'L' if pen_down else 'M'}{x:.1f} {_y(value / ceiling, panel):.1f}")
        pen_down = True
    return f'<path class="line {kind}" d="{" ".join(path)}"/>'


def _lane(lane: Lane, number: int, course: Course) -> list[str]:
    y = _LANES_TOP + number * LANE
    stays = [
        f'<rect class="{_TONE_CLASS[TONES.get(stay.state, "warm")]}" x="{_x(stay.begin, course):.1f}" y="{y}" '
        f'width="{max(0.8, _x(stay.end, course) - _x(stay.begin, course)):.1f}" height="9">'
        f"<title>{escape(f'{lane.name} {stay.state}, {stay.begin:.2f}s to {stay.end:.2f}s')}</title></rect>"
        for stay in lane.stays
    ]
    states = ", ".join(dict.fromkeys(stay.state for stay in lane.stays))
    return [f'<text class="ink" x="{LEFT}" y="{y - 4}">{escape(f"{lane.name} ({states})")}</text>', *stays]


_TONE_CLASS = {"calm": "calm", "warm": "warm", "hot": "alarm"}


def _shades(facts: Facts, course: Course, bottom: int) -> list[str]:
    shades = []
    for name, (begin, end) in facts.times.faults.items():
        left = _x(begin - facts.zero, course)
        right = _x(course.length_s if end is None else end - facts.zero, course)
        shades.append(
            f'<rect class="harm" x="{left:.1f}" y="{TOP}" width="{max(1.0, right - left):.1f}" '
            f'height="{bottom - TOP}"><title>{escape(name)}</title></rect>'
        )
    return shades


def _names(facts: Facts, course: Course) -> list[str]:
    """Two lines above the picture, so that a short fault and the window after it do not overlap: windows, then faults,
    each where it begins.
    """
    windows = [(facts.times.windows[name].start, name) for name in _NAMED_WINDOWS if name in facts.times.windows]
    faults = [(begin, f"fault: {name}") for name, (begin, _) in facts.times.faults.items()]
    return [
        *(_name(_x(at - facts.zero, course), 13, name, "ink") for at, name in windows),
        *(_name(_x(at - facts.zero, course), 28, name, "hot") for at, name in faults),
    ]


def _name(x: float, y: int, name: str, kind: str) -> str:
    edge = f'<path class="edge" d="M{x:.1f} {y - 10} V{y + 3}"/>'
    return f'{edge}<text class="{kind}" x="{x + 4:.1f}" y="{y}">{escape(name)}</text>'


def _marks(facts: Facts, course: Course, bottom: int) -> list[str]:
    return [
        f'<path class="mark" d="M{_x(m.at, course):.1f} {TOP} V{bottom}" stroke-dasharray="2 3">'
        f"<title>{escape(f'{m.clock} {m.text}')}</title></path>"
        for m in timeline(facts)
        if m.tone == "stack" and m.at is not None
    ]


def _axis(course: Course, bottom: int) -> list[str]:
    seconds = course.length_s
    step = next((s for s in (1, 2, 5, 10, 30, 60, 300, 600) if seconds / s <= 12), 3600)
    labels = [
        f'<text class="ink" x="{_x(at, course):.1f}" y="{bottom + 16}" text-anchor="middle">{at}s</text>'
        for at in range(0, seconds + 1, step)
    ]
    return [*labels, f'<text class="ink" x="{LEFT}" y="{bottom + 34}">after the start of the load</text>']
