"""Did we send on time? The harness measures itself, so that its own delays are never blamed on the stack."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from chaos.settings import setting
from chaos.spec.model import Unit
from chaos.verdict.latency import QuantileName, estimate_quantile
from chaos.verdict.naming import requests
from chaos.verdict.outcome import Estimate
from chaos.verdict.view import View, first_attempts


@dataclass(frozen=True)
class LoadLateness:
    """See `summary`."""

    name: ClassVar[str] = "load_lateness"
    summary: ClassVar[str] = "time from intended to real first send: how late the harness itself was"
    unit: ClassVar[Unit] = "duration"
    needs_window: ClassVar[bool] = True

    quantile: QuantileName = setting("which quantile", default="p99")
    load: str | None = setting("only this load; default all", default=None)

    def estimate(self, view: View) -> Estimate:
        """Quantile over first attempts with its order-statistic interval, in seconds; it names the latest."""
        samples = view.evidence.samples
        sent = view.attempts(self.load) & first_attempts(samples)
        late = samples.sent_s - samples.intended_s
        found = estimate_quantile(late[sent], self.quantile, view.bound)
        return replace(found, records=requests(samples, sent, worst=late))
