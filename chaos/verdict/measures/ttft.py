"""How long until something appears? Whoever saw nothing waited forever."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.settings import setting
from chaos.spec.model import Unit
from chaos.verdict.latency import QuantileName, estimate_wait, ttft_s
from chaos.verdict.outcome import Estimate
from chaos.verdict.view import View


@dataclass(frozen=True)
class Ttft:
    """See `summary`."""

    name: ClassVar[str] = "ttft"
    summary: ClassVar[str] = "time from intended send to first token; no token counts as infinitely slow"
    unit: ClassVar[Unit] = "duration"
    needs_window: ClassVar[bool] = True
    compared: ClassVar[Unit] = "factor"

    quantile: QuantileName = setting("which quantile", default="p99")
    load: str | None = setting("only this load; default all", default=None)

    def estimate(self, view: View) -> Estimate:
        """Quantile with its order-statistic interval, in seconds."""
        return estimate_wait(ttft_s(view.evidence.samples), view, self.load, self.quantile)
