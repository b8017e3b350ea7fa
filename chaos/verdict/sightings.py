"""From when to when a fault was seen, and why what was seen is not enough.

    inject ─────► first seen ─────────────── last seen ─────► revert begins
      3 s or a tenth of its life at most       as much at most

A look counts from its beginning when it is the first, and until its end when it is the last: an observer may have to
wait for an answer, and what it saw was there meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from chaos.journal.record import Record
from chaos.spec.model import FaultEntry

UNSEEN_AT_MOST_S = 3.0
UNSEEN_AT_MOST_SHARE = 0.1


@runtime_checkable
class SlowToShow(Protocol):
    """A fault whose harm is under way before it can be proved, such as a drain or a loop of deaths."""

    @property
    def shows_within_s(self) -> float:
        """How long after the inject it is seen at the latest."""
        ...


@dataclass(frozen=True)
class Sightings:
    """All that the journal has of one fault. `confirmed` and `still` are the looks after the inject and before the
    revert.
    """

    entry: FaultEntry
    injected: Record | None
    confirmed: tuple[Record, ...]
    still: tuple[Record, ...]
    reverted: Record | None

    @property
    def unseen_first_s(self) -> float | None:
        """From the inject to the look that saw it first."""
        first = next((look for look in self.confirmed if look.fields.get("seen")), None)
        return max(0.0, _began(first) - self.injected.t) if first and self.injected else None

    @property
    def unseen_last_s(self) -> float | None:
        """From the last look that saw it to the beginning of the revert."""
        last = next((look for look in reversed(self.still) if look.fields.get("seen")), None)
        return max(0.0, _began(self.reverted) - last.t) if last and self.reverted else None

    def doubt(self) -> str | None:
        """Why it does not count as confirmed; None when it does."""
        if not self.confirmed:
            return "nobody looked whether it was there"
        lived_its_time = self.reverted is not None and self.reverted.fields.get("by") == "timeline"
        if not self.still and lived_its_time:
            return "nobody looked before its revert whether it was still there"
        blind = next((look for look in self.confirmed + self.still if not look.fields.get("seen")), None)
        return str(blind.fields.get("what", "")) if blind else self._gap()

    def _gap(self) -> str | None:
        """What was seen, but too late, or for the last time too early."""
        at_most_s = max(UNSEEN_AT_MOST_S, UNSEEN_AT_MOST_SHARE * self.entry.for_)
        fault = self.entry.fault
        soon_s = max(at_most_s, fault.shows_within_s) if isinstance(fault, SlowToShow) else at_most_s
        counted = "its window counts users of that time as harmed, which nobody saw"
        if (self.unseen_first_s or 0.0) > soon_s:
            return f"first seen {self.unseen_first_s:.1f}s after its inject, wanted within {soon_s:.1f}s: {counted}"
        if (self.unseen_last_s or 0.0) > at_most_s:
            return f"last seen {self.unseen_last_s:.1f}s before its revert, wanted within {at_most_s:.1f}s: {counted}"
        return None


def _began(record: Record) -> float:
    """When the look or revert of a record began; journals of before do not tell how long it took."""
    return record.t - float(record.fields.get("took_s", 0.0))
