"""What saboteurs do to the targets of an in-memory stack: calls on files that fail or take long, and a wrong clock."""

from __future__ import annotations

from chaos.ports import Clock
from chaos.testing.programs import FakePrograms
from chaos.testing.stack import FakeTarget


class Tampered:
    """Asked by whoever answers in a target's place."""

    def __init__(self, programs: FakePrograms, clock: Clock) -> None:
        """By the orders of those that are at work, and the right time."""
        self._programs = programs
        self._clock = clock

    def error(self, target: FakeTarget) -> str | None:
        """The name of the errno that its calls are answered with."""
        found = [order["error"] for order in self._programs.at_work("io_calls", target.record.pids) if "error" in order]
        return found[0] if found else None

    def delay_s(self, target: FakeTarget) -> float:
        """How long its calls are held."""
        return sum(float(order.get("delay_s", 0)) for order in self._programs.at_work("io_calls", target.record.pids))

    def told_s(self, target: FakeTarget) -> float:
        """The date by its clock. A drift has had a minute."""
        orders = self._programs.at_work("clock", target.record.pids)
        return self._clock.wall() + sum(float(order["ahead_s"]) + 60 * float(order["drift"]) for order in orders)
