"""Full jitter: a retry waits a random time between nothing and an exponentially growing, capped bound (theory.md,
section 2.2).
"""

from __future__ import annotations

import random

from target_stack.gateway.policies.settings import BackoffSettings


def bound_s(settings: BackoffSettings, retry: int) -> float:
    """Longest pause in seconds before the given retry (1 is the first): min(cap, base * 2**(retry - 1))."""
    if settings.kind == "none":
        return 0.0
    doublings = min(retry - 1, 60)  # 2.0**1024 would overflow; the cap holds long before
    return min(settings.cap_s, settings.base_s * 2.0**doublings)


def pause_s(settings: BackoffSettings, retry: int, rng: random.Random) -> float:
    """The pause in seconds to take before the given retry."""
    return rng.uniform(0.0, bound_s(settings, retry))
