"""Do answers admit that they are degraded? Counted among answers only, so that failing more cannot look like
degrading less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.settings import setting
from chaos.spec.model import Unit
from chaos.verdict.outcome import Estimate
from chaos.verdict.shares import degraded_share, estimate_share
from chaos.verdict.view import View


@dataclass(frozen=True)
class DegradedRatio:
    """See `summary`."""

    name: ClassVar[str] = "degraded_ratio"
    summary: ClassVar[str] = "share of answers that say in x-degraded that something is missing"
    unit: ClassVar[Unit] = "ratio"
    needs_window: ClassVar[bool] = True
    compared: ClassVar[Unit] = "points"

    load: str | None = setting("only this load; default all", default=None)
    reason: str | None = setting("only this reason, such as no_retrieval; default any", default=None)

    def estimate(self, view: View) -> Estimate:
        """Share with its Wilson interval."""
        return estimate_share(degraded_share(self.reason), view, self.load)
