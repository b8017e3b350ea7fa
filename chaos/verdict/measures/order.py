"""Did one thing lead to the other? A breaker that closes without having tried first believes what nobody checked.

Counted are the first events of each name from the moment on. They must come in the order that is written; one that
comes before its forerunner breaks it for good. A repetition (opened again after half-open) breaks nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from chaos.journal.record import Record
from chaos.settings import setting
from chaos.spec.model import Unit
from chaos.units import Duration
from chaos.verdict.events import About, happened_at, polled_until, unheard
from chaos.verdict.measures.event import anchor_of
from chaos.verdict.naming import journal_line
from chaos.verdict.outcome import Estimate
from chaos.verdict.view import Bound, View


@dataclass(frozen=True)
class Order:
    """See `summary`. Written `order: [NAME, NAME, ...]` in the file."""

    name: ClassVar[str] = "order"
    summary: ClassVar[str] = "delay until the last of several events that must follow one another; never if they do not"
    unit: ClassVar[Unit] = "duration"
    needs_window: ClassVar[bool] = False

    order: tuple[str, ...] = setting("names of the events, the first first; two or more, each once")
    within: Duration = setting("longest delay until the last of them")
    of: str = setting("what the delay counts from: NAME.start or NAME.end of a fault")
    dependency: str | None = setting("only events of this dependency", default=None)
    replica: str | None = setting("only events of this replica", default=None)

    def __post_init__(self) -> None:
        """Raises ValueError for what is no order."""
        if len(self.order) < 2 or len(set(self.order)) != len(self.order):
            raise ValueError("an order takes two events or more, each once")

    def carried_bound(self) -> Bound:
        """The claim is part of the settings."""
        return Bound(at_most=float(self.within))

    def estimate(self, view: View) -> Estimate:
        """Exact delay of the last event; endless when the order was broken; at least as long as was listened to while
        one is missing.
        """
        anchor = anchor_of(self.of, view.times)
        if anchor is None:
            return Estimate(None, missing=f"{self.of} never came")
        since, zero = anchor
        first = self._first(view, since)
        records = tuple(journal_line(record) for record in first if record)
        broken = self._broken(first)
        if broken and (lost := self._lost(view, since, first)):
            return Estimate(None, missing=f"{lost}: that {broken} proves nothing")
        if broken:
            return Estimate(None, (math.inf, math.inf), len(records), detail=broken, records=records)
        last = first[-1]
        if last is not None:
            delay = max(0.0, happened_at(last) - zero)
            return Estimate(delay, (delay, delay), len(records), detail=f"after {self.of}", records=records)
        return self._unfinished(view, zero, first, records)

    def _first(self, view: View, since: float) -> tuple[Record | None, ...]:
        """The first event of each name from `since` on."""
        about = About(self.dependency, self.replica)
        found = (about.found(view.evidence, name, lambda t: t >= since) for name in self.order)
        return tuple(events[0] if events else None for events in found)

    def _broken(self, first: tuple[Record | None, ...]) -> str | None:
        """Which event came without its forerunner."""
        for (before, earlier), (after, later) in pairwise(zip(self.order, first, strict=True)):
            if later is not None and (earlier is None or happened_at(earlier) > happened_at(later)):
                return f"{after} at {happened_at(later):.2f}s without {before} before it"
        return None

    def _lost(self, view: View, since: float, first: tuple[Record | None, ...]) -> str | None:
        """Why a forerunner may have come and was not heard."""
        return unheard(view.evidence, since, max(happened_at(record) for record in first if record))

    def _unfinished(
        self, view: View, zero: float, first: tuple[Record | None, ...], records: tuple[str, ...]
    ) -> Estimate:
        missing = next(name for name, record in zip(self.order, first, strict=True) if record is None)
        heard = polled_until(view.evidence)
        if heard is None or heard <= zero:
            return Estimate(None, missing=f"nobody listened to the stack's events after {self.of}")
        observed = heard - zero
        wait = f"listen longer than {self.within} after {self.of}: a longer recovery window"
        told = f"no {About(self.dependency, self.replica).words(missing)} within {observed:.1f}s"
        return Estimate(None, (observed, math.inf), len(records), detail=told, to_settle=wait, records=records)
