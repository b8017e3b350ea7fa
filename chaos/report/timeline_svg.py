"""The run as one picture: arrivals, success and time to first token by the second, faults shaded, events marked.

Plain SVG without scripts or outside references. Colours follow the reader's light or dark setting.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

from chaos.report.facts import Facts, arrivals_per_s, timeline
from chaos.verdict.latency import ttft_s
from chaos.verdict.shares import SUCCESS
from chaos.verdict.signals import share_signal, wait_signal
from chaos.verdict.view import View
from chaos.verdict.wording import say

WIDTH, LEFT, RIGHT, TOP, PANEL, GAP = 960, 64, 12, 54, 92, 30
_PLOT = WIDTH - LEFT - RIGHT
_BOTTOM = TOP + 3 * PANEL + 2 * GAP
_NAMED_WINDOWS = ("baseline", "recovery", "settled")

STYLE = """
.ink{fill:#24292f}.hot{fill:#cf222e}.midtext{fill:#0969da}.tailtext{fill:#9a6700}.edge{stroke:#8c959f;stroke-width:.7}
.faint{stroke:#d0d7de;fill:none}.harm{fill:#cf222e;opacity:.13}.bar{fill:#8c959f;opacity:.55}
.good{stroke:#1a7f37}.mid{stroke:#0969da}.tail{stroke:#9a6700}.line{fill:none;stroke-width:1.8}.mark{stroke:#8250df}
text{font:12px system-ui,sans-serif}
@media (prefers-color-scheme:dark){.ink{fill:#e6edf3}.hot{fill:#ff7b72}.midtext{fill:#58a6ff}.tailtext{fill:#d29922}
.faint{stroke:#30363d}.harm{fill:#ff7b72;opacity:.2}
.good{stroke:#3fb950}.mid{stroke:#58a6ff}.tail{stroke:#d29922}.mark{stroke:#bc8cff}}
"""


def to_svg(facts: Facts) -> str:
    """The picture; a run without load gives a picture that says so."""
    start, end = facts.times.load_start, facts.times.load_end
    if start is None or end is None or end - start < 1:
        return _frame(60, '<text class="ink" x="12" y="34">No load was sent, so there is nothing to draw.</text>')
    seconds = int(end - start)
    view, load_end = View(facts.evidence, facts.times), start + seconds
    arrivals = arrivals_per_s(facts)[:seconds]
    success = share_signal(SUCCESS, rising_is_good=True).slices(view, None, start, load_end)
    median = wait_signal(ttft_s, 0.5).slices(view, None, start, load_end)
    tail = wait_signal(ttft_s, 0.99).slices(view, None, start, load_end)
    ceiling = _ceiling(np.concatenate((median, tail)))
    body = [
        *_shades(facts, seconds),
        *_names(facts, seconds),
        *_panel(0, "requests due in each second", _bars(arrivals), (str(max(arrivals)), "0")),
        *_panel(1, "share served", [_line(success, 1.0, 1, "good")], ("100%", "0%")),
        *_panel(2, _WAITS, [_line(median, ceiling, 2, "mid"), _line(tail, ceiling, 2, "tail")], (_s(ceiling), "0s")),
        *_marks(facts, seconds),
        *_axis(seconds),
    ]
    return _frame(_BOTTOM + 40, "\n".join(body))


class _Drawn(str):
    """Text that is markup already."""

    __slots__ = ()


_WAITS = _Drawn(
    'time to first token: <tspan class="midtext">median (p50)</tspan>, <tspan class="tailtext">slowest 1% (p99)</tspan>'
)


def _s(seconds: float) -> str:
    return say(seconds, "duration")


def _frame(height: int, body: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="arrivals, success and time to first token over the run">\n'
        f"<style>{STYLE}</style>\n{body}\n</svg>\n"
    )


def _ceiling(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """Top of the latency panel: the next round number above the largest finite value; waits without an end touch the
    top.
    """
    finite = values[np.isfinite(values)]
    most = max(0.05, float(finite.max())) if len(finite) else 1.0
    step = 10.0 ** math.floor(math.log10(most))
    return next(step * n for n in (1, 2, 3, 5, 10) if step * n >= most * (1 - 1e-9))


def _x(at: float, seconds: int) -> float:
    return LEFT + _PLOT * min(max(at, 0.0), seconds) / seconds


def _y(share: float, panel: int) -> float:
    return TOP + panel * (PANEL + GAP) + PANEL * (1 - min(max(share, 0.0), 1.0))


def _panel(number: int, title: str, shapes: Iterable[str], ends: tuple[str, str]) -> list[str]:
    y = TOP + number * (PANEL + GAP)
    return [
        f'<rect class="faint" x="{LEFT}" y="{y}" width="{_PLOT}" height="{PANEL}"/>',
        f'<text class="ink" x="{LEFT}" y="{y - 6}">{title if isinstance(title, _Drawn) else escape(title)}</text>',
        f'<text class="ink" x="{LEFT - 6}" y="{y + 10}" text-anchor="end">{escape(ends[0])}</text>',
        f'<text class="ink" x="{LEFT - 6}" y="{y + PANEL}" text-anchor="end">{escape(ends[1])}</text>',
        *shapes,
    ]


def _bars(counts: Sequence[int]) -> list[str]:
    most, seconds = max(1, max(counts, default=1)), len(counts)
    width = _PLOT / max(1, seconds)
    return [
        f'<rect class="bar" x="{_x(i, seconds):.1f}" y="{_y(n / most, 0):.1f}" '
        f'width="{max(0.5, width - 1):.1f}" height="{PANEL * n / most:.1f}"/>'
        for i, n in enumerate(counts)
    ]


def _line(values: np.ndarray[tuple[int], np.dtype[np.float64]], ceiling: float, panel: int, kind: str) -> str:
    """A line through the middle of each second; a second without requests leaves a gap."""
    path, pen_down = [], False
    for i, value in enumerate(values.tolist()):
        if math.isnan(value):
            pen_down = False
            continue
        path.append(f"{'L' if pen_down else 'M'}{_x(i + 0.5, len(values)):.1f} {_y(value / ceiling, panel):.1f}")
        pen_down = True
    return f'<path class="line {kind}" d="{" ".join(path)}"/>'


def _shades(facts: Facts, seconds: int) -> list[str]:
    shades = []
    for name, (begin, end) in facts.times.faults.items():
        left = _x(begin - facts.zero, seconds)
        right = _x((facts.zero + seconds if end is None else end) - facts.zero, seconds)
        shades.append(
            f'<rect class="harm" x="{left:.1f}" y="{TOP}" width="{max(1.0, right - left):.1f}" '
            f'height="{_BOTTOM - TOP}"><title>{escape(name)}</title></rect>'
        )
    return shades


def _names(facts: Facts, seconds: int) -> list[str]:
    """Two lines above the picture, so that a short fault and the window after it do not overlap: windows, then faults,
    each where it begins.
    """
    windows = [(facts.times.windows[name].start, name) for name in _NAMED_WINDOWS if name in facts.times.windows]
    faults = [(begin, f"fault: {name}") for name, (begin, _) in facts.times.faults.items()]
    return [
        *(_name(_x(at - facts.zero, seconds), 13, name, "ink") for at, name in windows),
        *(_name(_x(at - facts.zero, seconds), 28, name, "hot") for at, name in faults),
    ]


def _name(x: float, y: int, name: str, kind: str) -> str:
    edge = f'<path class="edge" d="M{x:.1f} {y - 10} V{y + 3}"/>'
    return f'{edge}<text class="{kind}" x="{x + 4:.1f}" y="{y}">{escape(name)}</text>'


def _marks(facts: Facts, seconds: int) -> list[str]:
    return [
        f'<path class="mark" d="M{_x(m.at, seconds):.1f} {TOP} V{_BOTTOM}" stroke-dasharray="2 3">'
        f"<title>{escape(f'{m.clock} {m.text}')}</title></path>"
        for m in timeline(facts)
        if m.tone == "stack" and m.at is not None
    ]


def _axis(seconds: int) -> list[str]:
    step = next((s for s in (1, 2, 5, 10, 30, 60, 300, 600) if seconds / s <= 12), 3600)
    labels = [
        f'<text class="ink" x="{_x(at, seconds):.1f}" y="{_BOTTOM + 16}" text-anchor="middle">{at}s</text>'
        for at in range(0, seconds + 1, step)
    ]
    return [*labels, f'<text class="ink" x="{LEFT}" y="{_BOTTOM + 34}">after the start of the load</text>']
