"""How long did users wait to be turned away? A quick no costs nothing, a late one their patience and our work."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from chaos.settings import setting
from chaos.spec.model import Unit
from chaos.verdict.latency import QuantileName, estimate_quantile
from chaos.verdict.naming import requests
from chaos.verdict.outcome import Estimate
from chaos.verdict.view import View, among


@dataclass(frozen=True)
class ShedLatency:
    """See `summary`."""

    name: ClassVar[str] = "shed_latency"
    summary: ClassVar[str] = "time from intended send to the refusal, of requests refused with 503 or 429"
    unit: ClassVar[Unit] = "duration"
    needs_window: ClassVar[bool] = True

    quantile: QuantileName = setting("which quantile", default="p99")
    load: str | None = setting("only this load; default all", default=None)

    def estimate(self, view: View) -> Estimate:
        """Quantile with its order-statistic interval, in seconds; missing where nobody was. It names the slowest."""
        samples = view.evidence.samples
        refused = view.requests(self.load) & among(samples.outcome, frozenset({"shed"}))
        waits = samples.end_s - samples.intended_s
        found = estimate_quantile(waits[refused], self.quantile, view.bound, noun="refused requests")
        return replace(found, records=requests(samples, refused, worst=waits))
