"""Which replica gets the next try: the one with the fewest requests in flight that has not been tried yet.

Requests in flight are what a slow replica gathers, so nobody has to measure speed: where answers take four times as
long, a quarter of them arrive. Taking turns, the other kind, gives each replica the same share whatever it makes of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class BalancerSettings:
    """`round_robin` looks at nobody's load."""

    kind: Literal["least_in_flight", "round_robin"] = "least_in_flight"


class Balancer:
    """Equal replicas take turns, so that an idle stack spreads its load too."""

    def __init__(self, settings: BalancerSettings) -> None:
        self._by_load = settings.kind == "least_in_flight"
        self._turn = 0

    def order(self, admitted: Sequence[str], in_flight: Mapping[str, int], tried: Collection[str] = ()) -> list[str]:
        """The admitted replicas, best first; those already tried by this request come last."""
        self._turn += 1
        count = max(1, len(admitted))
        turns = {name: (place - self._turn) % count for place, name in enumerate(admitted)}
        load = in_flight if self._by_load else {}
        return sorted(admitted, key=lambda name: (name in tried, load.get(name, 0), turns[name]))
