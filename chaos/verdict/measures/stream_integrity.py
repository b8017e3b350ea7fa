"""Did every answer that began also end truthfully: whole, or with an error frame that says it is not?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.settings import setting
from chaos.spec.model import Unit
from chaos.verdict.outcome import Estimate
from chaos.verdict.shares import INTEGRITY, estimate_share
from chaos.verdict.view import View


@dataclass(frozen=True)
class StreamIntegrity:
    """See `summary`."""

    name: ClassVar[str] = "stream_integrity"
    summary: ClassVar[str] = (
        "share of answers with a first token that ended whole or with an error frame, not by a bare end or silence"
    )
    unit: ClassVar[Unit] = "ratio"
    needs_window: ClassVar[bool] = True
    compared: ClassVar[Unit] = "points"

    load: str | None = setting("only this load; default all", default=None)

    def estimate(self, view: View) -> Estimate:
        """Share with its Wilson interval."""
        return estimate_share(INTEGRITY, view, self.load)
