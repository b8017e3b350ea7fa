"""How often did the stack say something: a breaker that opens once has worked, one that flaps has not."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from chaos.settings import setting
from chaos.spec.model import Unit
from chaos.verdict.events import About, unheard
from chaos.verdict.gauges import exact
from chaos.verdict.naming import journal_lines
from chaos.verdict.outcome import Estimate
from chaos.verdict.view import View


@dataclass(frozen=True)
class EventCount:
    """See `summary`. Written `event_count: NAME` in the file."""

    name: ClassVar[str] = "event_count"
    summary: ClassVar[str] = "how many events of a name there were in the window; exact only where all were heard"
    unit: ClassVar[Unit] = "count"
    needs_window: ClassVar[bool] = True

    event_count: str = setting("name of the event, such as breaker_opened")
    dependency: str | None = setting("only events of this dependency", default=None)
    replica: str | None = setting("only events of this replica", default=None)
    reason: str | None = setting("only events with this reason, such as output_length", default=None)

    def estimate(self, view: View) -> Estimate:
        """See `count_events`."""
        return count_events(view, self.event_count, About(self.dependency, self.replica, self.reason))


def count_events(view: View, name: str, about: About) -> Estimate:
    """The exact count over the view's window; at least what was heard where something may not have been."""
    window = view.window
    if window is None:
        return Estimate(None, missing="no window to look at")
    found = about.found(view.evidence, name, lambda t: any(start <= t < end for start, end in window.spans))
    deaf = unheard(view.evidence, window.start, window.end)
    if deaf and not found:
        return Estimate(None, missing=f"{deaf}: that there was no {about.words(name)} proves nothing")
    told = f"{len(found)} {about.words(name)}"
    records = journal_lines(found)
    if deaf is None:
        return replace(exact(float(len(found)), len(found), told), records=records)
    heard = (float(len(found)), math.inf)
    settle = f"a run that hears all events of this window: {deaf}"
    return Estimate(None, heard, len(found), detail=f"{told} at least, {deaf}", to_settle=settle, records=records)
