"""Is anything left behind? Requests that engines still hold when every client has its answer are leaked slots and
memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.settings import setting
from chaos.spec.model import Unit
from chaos.verdict.counters import tracks
from chaos.verdict.gauges import gauge_over
from chaos.verdict.outcome import Estimate
from chaos.verdict.view import View

SERIES = ("vllm:num_requests_running", "vllm:num_requests_waiting")


@dataclass(frozen=True)
class RequestsRunning:
    """See `summary`."""

    name: ClassVar[str] = "requests_running"
    summary: ClassVar[str] = "requests that engines still hold at the end of the window; in `settled` after the drain"
    unit: ClassVar[Unit] = "count"
    needs_window: ClassVar[bool] = True

    target: str | None = setting("only this engine; default all", default=None)

    def estimate(self, view: View) -> Estimate:
        """Sum of running and waiting requests at the last reading of every engine."""
        found = tuple(t for name in SERIES for t in tracks(view.evidence.readings.select(name, None, self.target)))
        if not found or view.window is None:
            return Estimate(None, missing=f"no series {SERIES[0]}: nobody serves it, or no probe reads who does")
        if not any(track.moved() for track in found):
            return Estimate(None, missing=f"{SERIES[0]} never moved during the run: who tells it may be dead or frozen")
        return gauge_over(found, view, view.window, "last")
