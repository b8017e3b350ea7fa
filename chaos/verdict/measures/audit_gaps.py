"""Is every call to a tool written down, also when the service was killed?

An audit that is written after the reply, or apart from the deed, has holes exactly where somebody will look for them.
Counted are requests that were answered, or had a side effect, without any audit line of their trace.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from chaos.settings import setting
from chaos.spec.model import Unit
from chaos.verdict.gauges import exact
from chaos.verdict.naming import MOST_NAMED
from chaos.verdict.outcome import Estimate
from chaos.verdict.tool_records import AUDIT, LEDGER, records_of, traces_at, traces_of, why_incomplete
from chaos.verdict.view import ANSWERED, View, among


@dataclass(frozen=True)
class AuditGaps:
    """See `summary`."""

    name: ClassVar[str] = "audit_gaps"
    summary: ClassVar[str] = "requests that a tool answered or acted on without a line in its audit"
    unit: ClassVar[Unit] = "count"
    needs_window: ClassVar[bool] = False

    load: str = setting("a load on the route `tools`")

    def estimate(self, view: View) -> Estimate:
        """An exact count over all requests of the load."""
        samples, rows = view.evidence.samples, view.requests(self.load)
        incomplete = why_incomplete(AUDIT, view, rows) or why_incomplete(LEDGER, view, rows)
        if incomplete:
            return Estimate(None, missing=incomplete)
        told = traces_at(view, rows & among(samples.outcome, ANSWERED))
        acted = traces_at(view, rows) & traces_of(records_of(LEDGER, view))
        if not told | acted:
            return Estimate(None, missing=f"no tool answered or acted on a request of {self.load}")
        gaps = (told | acted) - traces_of(records_of(AUDIT, view))
        found = exact(float(len(gaps)), len(told | acted), f"{len(gaps)} of {len(told | acted)} calls unaudited")
        return replace(found, records=tuple(f"trace {trace}" for trace in sorted(gaps)[:MOST_NAMED]))
