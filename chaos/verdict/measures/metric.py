"""Any Prometheus series that a probe has read.

A series that is not there, or that never changed during the whole run, proves nothing: the exporter may be dead or
frozen while it still answers. Such a hypothesis is inconclusive, unless the file says with `may_rest` that the series
is expected to stay as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.settings import setting
from chaos.spec.model import Unit
from chaos.verdict.counters import NotASeries, counter, parse_selector, tracks
from chaos.verdict.gauges import Reduce, gauge_over, growth_over
from chaos.verdict.outcome import Estimate
from chaos.verdict.view import View


@dataclass(frozen=True)
class Metric:
    """See `summary`. Written `metric: name{label=value}` in the file."""

    name: ClassVar[str] = "metric"
    summary: ClassVar[str] = "any Prometheus series of the stack, boiled down over the window"
    unit: ClassVar[Unit] = "factor"
    needs_window: ClassVar[bool] = True

    metric: str = setting("series as name{label=value}; several matching series count together")
    reduce: Reduce = setting(
        "last, mean, rate and delta add matching series up; max and min take the most extreme; rate is per second",
        default="last",
    )
    target: str | None = setting("only this target; default all", default=None)
    may_rest: bool = setting(
        "accept a series that never changes, such as an error count that stays zero", default=False
    )

    def estimate(self, view: View) -> Estimate:
        """One exact number: readings are not a sample of anything, so the interval is the value itself."""
        try:
            name, labels = parse_selector(self.metric)
        except NotASeries as error:
            return Estimate(None, missing=str(error))
        if view.window is None:
            return Estimate(None, missing="it was given no window to look at")
        readings = view.evidence.readings
        found = tracks(readings.select(name, labels, self.target))
        if not found:
            return Estimate(None, missing=f"no series {self.metric}: nobody serves it, or no probe reads who does")
        grown = counter(readings, name, labels, self.target)
        if not self.may_rest and not (grown and grown.moved):
            still = f"{self.metric} never moved during the run: who tells it may be dead or frozen"
            return Estimate(None, missing=f"{still} (`may_rest: true` where it may stay as it is)")
        if self.reduce in ("rate", "delta") and grown:
            return growth_over(grown, view.window, per_second=self.reduce == "rate")
        return gauge_over(found, view, view.window, self.reduce)
