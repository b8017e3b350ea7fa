"""Full jitter: a retry waits a random time between nothing and an exponentially growing, capped bound (theory.md,
section 2.2).

`kind: exponential` waits the bound itself, so all that failed in one moment come back in one moment. A pause that the
other side asked for (Retry-After) is a floor, and the jitter goes on top of it, or everybody would come at its end.
"""

from __future__ import annotations

import random
from typing import Literal

from target_stack.gateway.policies.settings import BackoffSettings


def bound_s(settings: BackoffSettings, retry: int) -> float:
    """Longest pause in seconds before the given retry (1 is the first): min(cap, base * 2**(retry - 1))."""
    if settings.kind == "none":
        return 0.0
    doublings = min(retry - 1, 60)  # 2.0**1024 would overflow; the cap holds long before
    return min(settings.cap_s, settings.base_s * 2.0**doublings)


def pause_s(settings: BackoffSettings, retry: int, rng: random.Random, asked_s: float = 0.0) -> float:
    """The pause in seconds to take before the given retry; never shorter than the other side asked for."""
    bound = bound_s(settings, retry)
    return asked_s + (bound if settings.kind == "exponential" else rng.uniform(0.0, bound))


def half(settings: BackoffSettings, retry: int, pause: float, asked_s: float = 0.0) -> Literal["first", "second"]:
    """The half of its bound in which a pause fell: with jitter both are equally likely, without it there is one."""
    return "first" if 2 * (pause - asked_s) < bound_s(settings, retry) else "second"


def asked_pause_s(header: str | None) -> float:
    """Seconds of a Retry-After header; 0 when there is none, and for a date or nonsense, which nobody sends here."""
    if header is None or not (header.isascii() and header.isdecimal()) or len(header) > 9:
        return 0.0
    return float(header)
