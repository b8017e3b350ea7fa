"""How many users were turned away on purpose?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.settings import setting
from chaos.spec.model import Unit
from chaos.verdict.outcome import Estimate
from chaos.verdict.shares import SHED, estimate_share
from chaos.verdict.view import View


@dataclass(frozen=True)
class ShedRatio:
    """See `summary`."""

    name: ClassVar[str] = "shed_ratio"
    summary: ClassVar[str] = "share of planned requests refused with 503 or 429; indeterminate ones left out"
    unit: ClassVar[Unit] = "ratio"
    needs_window: ClassVar[bool] = True
    compared: ClassVar[Unit] = "points"

    load: str | None = setting("only this load; default all", default=None)

    def estimate(self, view: View) -> Estimate:
        """Share with its Wilson interval."""
        return estimate_share(SHED, view, self.load)
