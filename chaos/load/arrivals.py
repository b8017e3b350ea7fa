"""When requests are due: a schedule made before the run, because open-loop traffic must not know how the stack is
doing.

Poisson means exponential gaps and nothing else: the number of arrivals varies from seed to seed, as real traffic does.
Nothing is rescaled to hit a count.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from chaos.spec.model import Load


def arrivals(load: Load, dice: random.Random, duration_s: float) -> tuple[float, ...]:
    """Due times in seconds from the start of the load, all below `duration_s`, ascending."""
    rate_per_s = float(load.rate)
    if rate_per_s <= 0:
        return ()
    times = constant(rate_per_s, duration_s) if load.arrivals == "constant" else poisson(rate_per_s, duration_s, dice)
    return tuple(times)


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
