"""What a target says about itself on /metrics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from chaos.inventory import Target
from chaos.ports import Host
from chaos.probes.exposition import Memo, parse_metrics
from chaos.probes.probe import Reading

DURATION = "scrape_duration_seconds"
"""Prometheus' own name for it. What a scrape tells may be so much older than the reading."""


@dataclass(frozen=True)
class MetricsText:
    """Scrapes the Prometheus text of every target that offers it. Make a new one for each run: it remembers series."""

    kind: ClassVar[str] = "metrics_text"
    summary: ClassVar[str] = "scrapes the Prometheus metrics of a target"
    period_s: ClassVar[float] = 0.5
    _memo: Memo = field(default_factory=dict)

    def applies_to(self, target: Target) -> bool:
        """Targets with a metrics URL."""
        return target.metrics is not None

    async def read(self, target: Target, host: Host) -> Reading:
        """All kept series of one scrape and how long it took, or why there are none."""
        began = host.clock.now()
        reply = await host.http.call("GET", target.metrics or "", timeout_s=1.0)
        if reply.status != 200:
            return Reading(self.kind, target.name, error=reply.error or f"/metrics answered {reply.status}")
        values = parse_metrics(reply.body, self._memo)
        if not values:
            return Reading(self.kind, target.name, error="/metrics holds no series")
        return Reading(self.kind, target.name, values={**values, DURATION: host.clock.now() - began})
