"""Is anybody served who may not be?

The audit says for every call whether the rules allow it and what became of it. A call that was done although the rules
say no was let through by whoever should have enforced them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from chaos.settings import setting
from chaos.spec.model import Unit
from chaos.verdict.gauges import exact
from chaos.verdict.naming import journal_lines
from chaos.verdict.outcome import Estimate
from chaos.verdict.tool_records import AUDIT, records_of, why_incomplete
from chaos.verdict.view import View

_DONE = ("ok", "replayed")


@dataclass(frozen=True)
class UnauthorisedCalls:
    """See `summary`."""

    name: ClassVar[str] = "unauthorised_calls"
    summary: ClassVar[str] = "calls to tools that were done although the caller may not make them"
    unit: ClassVar[Unit] = "count"
    needs_window: ClassVar[bool] = False

    agent: str | None = setting("only calls of this agent; default all", default=None)

    def estimate(self, view: View) -> Estimate:
        """An exact count over all audited calls of the run."""
        incomplete = why_incomplete(AUDIT, view, view.requests())
        if incomplete:
            return Estimate(None, missing=incomplete)
        calls = [r for r in records_of(AUDIT, view) if self.agent in (None, r.fields.get("agent"))]
        if not calls:
            return Estimate(None, missing="no call to a tool was audited")
        done = [r for r in calls if not r.fields.get("permitted") and r.fields.get("outcome") in _DONE]
        found = exact(float(len(done)), len(calls), f"{len(done)} of {len(calls)} calls")
        return replace(found, records=journal_lines(done))
