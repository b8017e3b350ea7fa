"""Which loop keeps a stack down? What one run shows of it: the loop that is at work is the one that has changed.

A run in which it was cut is the only proof (a control arm); without one these are suspects, the likeliest first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chaos.verdict.course import Stretch
from chaos.verdict.statistics import Floats

_GAIN = 1.05
_OPEN = 0.5
_LOST = 0.5
_ASKED = 0.1
_LONGER = 3.0
_IN_LINE = 5.0


@dataclass(frozen=True)
class Suspect:
    """A loop by its name (retries, queue, cache, breaker) and what speaks against it, in words."""

    loop: str
    seen: str


def suspects(before: Stretch, tail: Stretch) -> tuple[Suspect, ...]:
    """Loops at work at the end of the run, the likeliest first.

    A cache that lost its entries explains everything behind it; a breaker that refuses keeps the rest from mattering;
    resends fill the line, so a long line is a loop of its own only where nobody resends.
    """
    found = (_cache(before, tail), _breaker(before, tail), _retries(before, tail), _queue(before, tail))
    return tuple(suspect for suspect in found if suspect is not None)


def _cache(before: Stretch, tail: Stretch) -> Suspect | None:
    was, now = _mean(before.hits), _mean(tail.hits)
    if was is None or now is None or was < _ASKED or now > _LOST * was:
        return None
    return Suspect("cache", f"{now:.0%} of looks find something, {was:.0%} before")


def _breaker(before: Stretch, tail: Stretch) -> Suspect | None:
    was, now = _mean(before.refusing), _mean(tail.refusing)
    if now is None or now < _OPEN or (was or 0.0) > _OPEN / 2:
        return None
    return Suspect("breaker", f"a breaker is open for {now:.0%} of the time")


def _retries(before: Stretch, tail: Stretch) -> Suspect | None:
    """Resends of clients, or of the front door to engines; whichever grew more."""
    grown = max((_per_request(before, tail, name) for name in ("sends", "calls")), key=lambda g: g[1] / max(g[0], 1e-9))
    was, now, who = grown
    if not was or now / was < _GAIN:
        return None
    return Suspect("retries", f"{now:.2f} {who} a request, {was:.2f} before")


def _per_request(before: Stretch, tail: Stretch, name: str) -> tuple[float, float, str]:
    counted = [(getattr(part, name), part.due) for part in (before, tail)]
    was, now = (float(np.nansum(number) / due.sum()) if due.sum() else 0.0 for number, due in counted)
    return was, now, name


def _queue(before: Stretch, tail: Stretch) -> Suspect | None:
    if not is_long(before.waiting, tail.waiting):
        return None
    return Suspect("queue", f"{_mean(tail.waiting):.0f} requests wait, {_mean(before.waiting):.0f} before")


def is_long(before: Floats, now: Floats) -> bool:
    """Whether far more wait than did before; False where nobody read the line."""
    was, waiting = _mean(before), _mean(now)
    return was is not None and waiting is not None and waiting >= max(_IN_LINE, _LONGER * was)


def _mean(values: Floats) -> float | None:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else None
