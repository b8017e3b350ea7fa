"""Did the stack keep quiet? Silence counts only where somebody listened all the while."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.settings import setting
from chaos.spec.model import Unit
from chaos.verdict.events import About
from chaos.verdict.measures.event_count import count_events
from chaos.verdict.outcome import Estimate
from chaos.verdict.view import Bound, View


@dataclass(frozen=True)
class Absent:
    """See `summary`. Written `absent: NAME` in the file."""

    name: ClassVar[str] = "absent"
    summary: ClassVar[str] = "that the stack told no event of a name in the window, while somebody listened"
    unit: ClassVar[Unit] = "count"
    needs_window: ClassVar[bool] = True

    absent: str = setting("name of the event, such as breaker_opened")
    dependency: str | None = setting("only events of this dependency", default=None)
    replica: str | None = setting("only events of this replica", default=None)
    reason: str | None = setting("only events with this reason, such as output_length", default=None)

    def carried_bound(self) -> Bound:
        """None at all."""
        return Bound(at_most=0.0)

    def estimate(self, view: View) -> Estimate:
        """The count of what should not be there."""
        return count_events(view, self.absent, About(self.dependency, self.replica, self.reason))
