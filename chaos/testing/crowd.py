"""How many requests the front doors of an in-memory stack have had: those of users, and those of strangers."""

from __future__ import annotations

from chaos.ports import Clock
from chaos.testing.programs import FakePrograms

USERS_PER_S = 5.0


class FakeCrowd:
    """Counts from look to look; who has come between two of them has come all the time."""

    def __init__(self, programs: FakePrograms, clock: Clock) -> None:
        """Nobody yet."""
        self._programs = programs
        self._clock = clock
        self._counts: dict[str, tuple[float, float]] = {}

    def page(self, address: str, doors: tuple[str | None, ...]) -> str:
        """A line of metrics of the front door that listens at these addresses."""
        now, (then, count) = self._clock.now(), self._counts.get(address, (self._clock.now(), 0.0))
        strangers = sum(
            float(crowd["rate"])
            for orders in self._programs.at_work("load")
            for crowd in orders["traffic"]
            if any(door in doors for door in orders["front_doors"])
        )
        count += (now - then) * (USERS_PER_S + strangers)
        self._counts[address] = now, count
        return f'gateway_requests_total{{route="chat",outcome="ok"}} {count}\n'
