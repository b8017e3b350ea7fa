"""How long until the whole answer is there? Whoever got none waited forever."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.settings import setting
from chaos.spec.model import Unit
from chaos.verdict.latency import QuantileName, e2e_s, estimate_wait
from chaos.verdict.outcome import Estimate
from chaos.verdict.view import View


@dataclass(frozen=True)
class E2e:
    """See `summary`."""

    name: ClassVar[str] = "e2e"
    summary: ClassVar[str] = "time from intended send to last token; no whole answer counts as infinitely slow"
    unit: ClassVar[Unit] = "duration"
    needs_window: ClassVar[bool] = True
    compared: ClassVar[Unit] = "factor"

    quantile: QuantileName = setting("which quantile", default="p99")
    load: str | None = setting("only this load; default all", default=None)

    def estimate(self, view: View) -> Estimate:
        """Quantile with its order-statistic interval, in seconds."""
        return estimate_wait(e2e_s(view.evidence.samples), view, self.load, self.quantile)
