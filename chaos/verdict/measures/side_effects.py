"""Did what was asked for once happen exactly once?

A reply that was lost says nothing about the deed: a caller that asks again without the key of its first try makes a
second ticket, a second refund. Counted are deeds beyond the first of one intent (one tool within one request), and
deeds that an answer told of and nobody finds in the ledger. A request that failed may have had its deed or not.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import ClassVar

from chaos.settings import setting
from chaos.spec.model import Unit
from chaos.verdict.gauges import exact
from chaos.verdict.naming import MOST_NAMED
from chaos.verdict.outcome import Estimate
from chaos.verdict.tool_records import LEDGER, per_intent, records_of, traces_at, traces_of, why_incomplete
from chaos.verdict.view import ANSWERED, View, among


@dataclass(frozen=True)
class SideEffects:
    """See `summary`."""

    name: ClassVar[str] = "side_effects"
    summary: ClassVar[str] = "side effects too many or too few: done again for one request, or told of and not found"
    unit: ClassVar[Unit] = "count"
    needs_window: ClassVar[bool] = False

    load: str = setting("a load whose every request asks for a side effect")

    def estimate(self, view: View) -> Estimate:
        """An exact count over all requests of the load."""
        samples, rows = view.evidence.samples, view.requests(self.load)
        if not rows.any():
            return Estimate(None, missing=f"no request of {self.load} was due")
        incomplete = why_incomplete(LEDGER, view, rows)
        if incomplete:
            return Estimate(None, missing=incomplete)
        ledger = records_of(LEDGER, view)
        asked, found = traces_at(view, rows), traces_of(ledger)
        if not asked & found:
            return Estimate(None, missing="no side effect of any of these requests was seen")
        told = traces_at(view, rows & among(samples.outcome, ANSWERED))
        extra = sum(times - 1 for (trace, _), times in per_intent(ledger).items() if trace in asked)
        lacking = len(told - found)
        detail = f"{extra} done again, {lacking} told of and not found, in {len(asked)} requests"
        again = {trace for (trace, _), times in per_intent(ledger).items() if times > 1 and trace in asked}
        found_count = exact(float(extra + lacking), len(asked), detail)
        return replace(found_count, records=_named(again, told - found))


def _named(again: AbstractSet[str], lacking: AbstractSet[str]) -> tuple[str, ...]:
    """The first few traces, each with what is wrong with it."""
    told = [(trace, "done again") for trace in sorted(again)] + [(trace, "not found") for trace in sorted(lacking)]
    return tuple(f"trace {trace}: {what}" for trace, what in told[:MOST_NAMED])
