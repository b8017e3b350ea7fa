"""Were users served? Degraded answers count: a user who got one was helped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.settings import setting
from chaos.spec.model import Unit
from chaos.verdict.outcome import Estimate
from chaos.verdict.shares import SUCCESS, estimate_share
from chaos.verdict.view import View


@dataclass(frozen=True)
class SuccessRatio:
    """See `summary`."""

    name: ClassVar[str] = "success_ratio"
    summary: ClassVar[str] = (
        "share of planned requests that got a whole answer in time, degraded ones included; indeterminate ones left out"
    )
    unit: ClassVar[Unit] = "ratio"
    needs_window: ClassVar[bool] = True
    compared: ClassVar[Unit] = "points"

    load: str | None = setting("only this load; default all", default=None)

    def estimate(self, view: View) -> Estimate:
        """Share with its Wilson interval."""
        return estimate_share(SUCCESS, view, self.load)
