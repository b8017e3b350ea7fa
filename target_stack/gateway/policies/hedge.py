"""When a request that has no first token yet is sent to a second replica as well. Off unless asked for.

After the 95th percentile of recent first tokens only one request in twenty is still waiting, so that a second call for
those costs about a twentieth more (theory.md, section 2.2). It is paid from the retry budget like any other extra
call, and never made after a token: both answers would be generated to their end.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class HedgeSettings:
    """`window` is how many recent first tokens the quantile is of; with fewer than `fewest` nothing is hedged."""

    kind: Literal["off", "quantile"] = "off"
    quantile: float = 0.95
    window: int = 200
    fewest: int = 50

    def __post_init__(self) -> None:
        """Raises ValueError for a quantile that is none, or a window that never fills."""
        if not 0 < self.quantile <= 1:
            raise ValueError("policies.hedge.quantile must be above 0 and at most 1")
        if not 1 <= self.fewest <= self.window:
            raise ValueError("policies.hedge: fewest must be at least 1 and at most window")


class HedgeDelay:
    """Learns how long first tokens take, and says how long to wait for one before a second replica is asked."""

    def __init__(self, settings: HedgeSettings) -> None:
        self._settings = settings
        self._seen: deque[float] = deque(maxlen=settings.window)

    def saw(self, first_token_s: float) -> None:
        """A first token came after so long."""
        if self._settings.kind != "off":
            self._seen.append(first_token_s)

    def delay_s(self) -> float | None:
        """The quantile; None: do not hedge."""
        if len(self._seen) < self._settings.fewest or self._settings.kind == "off":
            return None
        rank = math.ceil(self._settings.quantile * len(self._seen)) - 1
        return sorted(self._seen)[rank]
