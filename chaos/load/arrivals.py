"""When requests are due: a schedule made before the run, because open-loop traffic must not know how the stack is
doing.

Poisson means exponential gaps and nothing else: the number of arrivals varies from seed to seed, as real traffic does.
Nothing is rescaled to hit a count. A surge is a stretch with another rate; a Poisson process remembers nothing, so each
stretch is drawn by itself.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from chaos.spec.model import Load


def arrivals(load: Load, dice: random.Random, duration_s: float, *, baseline_s: float = 0.0) -> tuple[float, ...]:
    """Due times in seconds from the start of the load, all below `duration_s`, ascending. `baseline_s` is where the
    time of a surge counts from.
    """
    if load.rate <= 0:
        return ()
    times: list[float] = []
    for start, end, rate_per_s in _stretches(load, duration_s, baseline_s):
        length_s = end - start
        even = load.arrivals == "constant"
        dues = constant(rate_per_s, length_s) if even else poisson(rate_per_s, length_s, dice)
        times += [start + due for due in dues]
    return tuple(times)


def _stretches(load: Load, duration_s: float, baseline_s: float) -> Iterator[tuple[float, float, float]]:
    """Start, end and rate of each stretch in which the rate stays the same."""
    rate_per_s, surge = float(load.rate), load.surge
    if surge is None:
        yield 0.0, duration_s, rate_per_s
        return
    start = min(duration_s, baseline_s + surge.at)
    end = min(duration_s, start + surge.for_)
    yield 0.0, start, rate_per_s
    yield start, end, rate_per_s * surge.times
    yield end, duration_s, rate_per_s


def constant(rate_per_s: float, duration_s: float) -> Iterator[float]:
    """Evenly spaced, the first at 0; each time is computed from its number, so no rounding adds up."""
    number = 0
    while (due := number / rate_per_s) < duration_s:
        yield due
        number += 1


def poisson(rate_per_s: float, duration_s: float, dice: random.Random) -> Iterator[float]:
    """A Poisson process: independent exponential gaps with mean 1/rate."""
    due = dice.expovariate(rate_per_s)
    while due < duration_s:
        yield due
        due += dice.expovariate(rate_per_s)
