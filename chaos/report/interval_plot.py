"""An interval against its bound as a small picture: upheld, refuted and undecided are told apart without reading.

  refuted              undecided              upheld
├──●──┤▒▒▒▒▒▒▒       ├──────●─▒──┤▒▒▒▒      ▒▒▒├─●─┤▒▒▒▒▒▒▒         ▒ where the claim wants it

Every row has a scale of its own: what counts is where the whisker lies against the shaded part.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from html import escape

from chaos.report.facts import found, wanted
from chaos.verdict.outcome import Judged

WIDTH, HEIGHT = 160, 22
_INSET, _MIDDLE = 6, HEIGHT / 2
_ROOM = 0.18
"""Part of the scale that is left free beyond the outermost number."""


def interval_plot(judged: Judged) -> str:
    """Inline SVG in the colours of the page; what it shows is its label too."""
    label = escape(f"{judged.verdict}: {found(judged)}, wanted {wanted(judged)}", quote=True)
    shapes = "".join(_shapes(judged))
    return f'<svg class="interval" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{shapes}</svg>'


def _shapes(judged: Judged) -> Iterable[str]:
    if judged.interval is None:
        yield f'<text class="nothing" x="{_INSET}" y="{_MIDDLE + 4}">nothing measured</text>'
        return
    low, high = scale(judged)

    def x(value: float) -> float:
        share = (value - low) / (high - low)
        return _INSET + (WIDTH - 2 * _INSET) * min(max(share, 0.0), 1.0)

    least, most = judged.bound.get("at_least", -math.inf), judged.bound.get("at_most", math.inf)
    left, right = (0.0 if math.isinf(least) else x(least)), (float(WIDTH) if math.isinf(most) else x(most))
    yield f'<rect class="wanted" x="{left:.1f}" y="2" width="{max(1.0, right - left):.1f}" height="{HEIGHT - 4}"/>'
    for edge in (limit for limit in (least, most) if math.isfinite(limit)):
        yield f'<path class="bound" d="M{x(edge):.1f} 0V{HEIGHT}"/>'
    yield from _whisker(judged.interval, judged.value, judged.verdict, x)


def _whisker(
    interval: tuple[float, float], value: float | None, verdict: str, x: Callable[[float], float]
) -> Iterable[str]:
    begin, end = x(interval[0]), x(interval[1]) if math.isfinite(interval[1]) else float(WIDTH - 2)
    yield f'<path class="whisker {verdict}" d="M{begin:.1f} {_MIDDLE}H{end:.1f}"/>'
    if math.isfinite(interval[0]):
        yield _end(begin, verdict)
    yield _end(end, verdict) if math.isfinite(interval[1]) else _arrow(end, verdict)
    if value is not None and math.isfinite(value):
        yield f'<circle class="value {verdict}" cx="{x(value):.1f}" cy="{_MIDDLE}" r="3.5"/>'


def _end(at: float, verdict: str) -> str:
    return f'<path class="whisker {verdict}" d="M{at:.1f} {_MIDDLE - 5}v10"/>'


def _arrow(at: float, verdict: str) -> str:
    """It has no upper end."""
    head = f"M{at - 6:.1f} {_MIDDLE - 5}L{at:.1f} {_MIDDLE}L{at - 6:.1f} {_MIDDLE + 5}"
    return f'<path class="whisker {verdict}" d="{head}"/>'


def scale(judged: Judged) -> tuple[float, float]:
    """Lowest and highest number on the scale: all that is drawn, and some room on both sides."""
    numbers = [n for n in (*(judged.interval or ()), judged.value, *judged.bound.values()) if n is not None]
    finite = [float(n) for n in numbers if math.isfinite(n)] or [0.0]
    low, high = min(finite), max(finite)
    room = _ROOM * (high - low) or max(abs(high), 0.1 if judged.unit == "ratio" else 1.0) * 0.5
    return low - room, high + room
