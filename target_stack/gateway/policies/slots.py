"""Who holds the slots: requests in flight against a limit, of which batch work may hold only a part.

Work that has started cannot be taken back, so a surge of long batch work would hold every slot before the first user
comes. The part that batch work may not hold is what users find free at any moment.
"""

from __future__ import annotations

from dataclasses import dataclass

from target_stack.gateway.policies.queue import Priority


@dataclass(frozen=True)
class SlotSettings:
    """`batch_most` is the share of the limit that batch work may hold; 1 keeps nothing back for users."""

    batch_most: float = 0.5


class Slots:
    """Counts what is in flight, by class. The limit comes with each question, because it moves."""

    def __init__(self, settings: SlotSettings) -> None:
        self._settings = settings
        self._held: dict[Priority, int] = {"interactive": 0, "batch": 0}

    @property
    def held(self) -> int:
        """Requests in flight."""
        return sum(self._held.values())

    def free(self, priority: Priority, limit: int) -> bool:
        """Whether a request of this class may start now. Batch work may always hold one slot, or it could starve."""
        if self.held >= limit:
            return False
        return priority == "interactive" or self._held["batch"] < max(1, int(limit * self._settings.batch_most))

    def start(self, priority: Priority) -> None:
        """A request starts."""
        self._held[priority] += 1

    def end(self, priority: Priority) -> None:
        """A request has ended."""
        self._held[priority] -= 1
