"""Are the answers right? Only prompts with a known right answer can tell; a failed one is a wrong one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.settings import setting
from chaos.spec.model import Unit
from chaos.verdict.outcome import Estimate
from chaos.verdict.shares import RECALL, estimate_share
from chaos.verdict.view import View


@dataclass(frozen=True)
class Recall:
    """See `summary`."""

    name: ClassVar[str] = "recall"
    summary: ClassVar[str] = "share of requests with a known right answer whose answer holds it"
    unit: ClassVar[Unit] = "ratio"
    needs_window: ClassVar[bool] = True
    compared: ClassVar[Unit] = "points"

    load: str | None = setting("only this load; default all", default=None)

    def estimate(self, view: View) -> Estimate:
        """Share with its Wilson interval."""
        return estimate_share(RECALL, view, self.load)
