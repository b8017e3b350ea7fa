"""Did the stack do what it should, and when? The stack's own structured events, timed by its own monotonic clock."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from chaos.settings import setting
from chaos.spec.model import Unit
from chaos.units import Duration
from chaos.verdict.events import About, happened_at, polled_until
from chaos.verdict.naming import journal_line
from chaos.verdict.outcome import Estimate
from chaos.verdict.view import Bound, View
from chaos.verdict.windows import RunTimes


@dataclass(frozen=True)
class Event:
    """See `summary`. Written `event: NAME` in the file."""

    name: ClassVar[str] = "event"
    summary: ClassVar[str] = "delay until the first event of a name after a fault starts or ends"
    unit: ClassVar[Unit] = "duration"
    needs_window: ClassVar[bool] = False

    event: str = setting("name of the event, such as breaker_opened")
    within: Duration = setting("longest delay")
    of: str = setting("what the delay counts from: NAME.start or NAME.end of a fault")
    dependency: str | None = setting("only events of this dependency", default=None)
    replica: str | None = setting("only events of this replica", default=None)
    reason: str | None = setting("only events with this reason, such as output_length", default=None)

    def carried_bound(self) -> Bound:
        """The claim is part of the settings."""
        return Bound(at_most=float(self.within))

    def estimate(self, view: View) -> Estimate:
        """Exact delay of the first match; without one at least as long as events were listened to."""
        anchor = anchor_of(self.of, view.times)
        if anchor is None:
            return Estimate(None, missing=f"{self.of} never came")
        since, zero = anchor
        about = About(self.dependency, self.replica, self.reason)
        found = about.found(view.evidence, self.event, lambda t: t >= since)
        if found:
            delay = max(0.0, happened_at(found[0]) - zero)
            detail = f"{about.words(self.event)} after {self.of}"
            return Estimate(delay, (delay, delay), len(found), detail=detail, records=(journal_line(found[0]),))
        heard = polled_until(view.evidence)
        if heard is None or heard <= zero:
            return Estimate(None, missing=f"nobody listened to the stack's events after {self.of}")
        observed = heard - zero
        wait = f"listen longer than {self.within} after {self.of}: a longer recovery window"
        none = f"no {about.words(self.event)} within {observed:.1f}s"
        return Estimate(None, (observed, math.inf), 0, detail=none, to_settle=wait)


def anchor_of(of: str, times: RunTimes) -> tuple[float, float] | None:
    """(first instant from which events count, zero of the delay) for `NAME.start` or `NAME.end`.

    A revert takes effect a little before it is recorded as done. Events therefore count from its beginning, and one
    that comes before the record has a delay of 0. One that comes while the fault stands is no answer to its end.
    """
    name, _, edge = of.rpartition(".")
    injected, reverted = times.faults.get(name, (None, None))
    if edge == "start" and injected is not None:
        return injected, injected
    if edge == "end" and reverted is not None:
        return min(times.ending.get(name, reverted), reverted), reverted
    return None
