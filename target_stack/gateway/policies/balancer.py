"""Which replica gets the next try: the one with the fewest requests in flight that has not been tried yet."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence


class LeastInFlight:
    """Least requests in flight; equal ones take turns, so that an idle stack spreads its load too."""

    def __init__(self) -> None:
        self._turn = 0

    def order(self, admitted: Sequence[str], in_flight: Mapping[str, int], tried: Collection[str] = ()) -> list[str]:
        """The admitted replicas, best first; those already tried by this request come last."""
        self._turn += 1
        count = max(1, len(admitted))
        turns = {name: (place - self._turn) % count for place, name in enumerate(admitted)}
        return sorted(admitted, key=lambda name: (name in tried, in_flight.get(name, 0), turns[name]))
