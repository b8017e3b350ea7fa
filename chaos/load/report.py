"""What a load did compared with what it was asked to do: the numbers that let a verdict trust its own traffic. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Any


@dataclass(frozen=True)
class LoadReport:
    """`finished` counts requests that came to an end by themselves. `lateness_s` has one entry per request sent: sent
    minus due.
    """

    load: str
    planned: int
    sent: int
    finished: int
    lateness_s: tuple[float, ...] = ()

    def lateness(self, share: float) -> float | None:
        """The quantile of lateness in seconds (`share` 0.5: the median); None when nothing was sent."""
        return quantile(self.lateness_s, share)


def quantile(values: Iterable[float], share: float) -> float | None:
    """The smallest value that at least `share` of all values do not exceed (nearest rank); None for no values."""
    ordered = sorted(values)
    if not ordered:
        return None
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def load_finished_fields(reports: Iterable[LoadReport]) -> dict[str, Any]:
    """The fields of the journal record `load_finished`."""
    each = tuple(reports)
    lateness_s = tuple(chain.from_iterable(report.lateness_s for report in each))
    return {
        "loads": {r.load: {"planned": r.planned, "sent": r.sent, "finished": r.finished} for r in each},
        "lateness_s_p50": quantile(lateness_s, 0.5),
        "lateness_s_p99": quantile(lateness_s, 0.99),
    }
