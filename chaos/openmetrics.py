"""Metric families to text that Prometheus reads: pure, for a page that is scraped and for a file that is collected.

The classic format and OpenMetrics differ in one thing here: OpenMetrics declares a counter without its `_total`. A text
that holds no counter is therefore the same in both. There are no traps in it: what is missing has no line, NaN is never
written, and what never came is `+Inf`.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Literal

from chaos.journal.series import series_name

CLASSIC_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"

TTFT_BOUNDS_S = (0.025, 0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 10.0, 30.0)
"""Upper ends of the buckets of waiting times, in seconds."""

Labels = Mapping[str, str]


@dataclass(frozen=True)
class Point:
    """One value of one series."""

    labels: Labels
    value: float


@dataclass(frozen=True)
class Spread:
    """A histogram. `counts` are those of each bucket alone, the last without an upper end; `total` is the sum of all
    that was finite.
    """

    labels: Labels
    bounds: tuple[float, ...]
    counts: tuple[int, ...]
    total: float

    @classmethod
    def of(cls, labels: Labels, bounds: tuple[float, ...], values: Iterable[float]) -> Spread:
        """Count values into buckets; one that never came (inf) counts in the last."""
        return cls.counted(labels, bounds, ((value, 1) for value in values))

    @classmethod
    def counted(cls, labels: Labels, bounds: tuple[float, ...], values: Iterable[tuple[float, int]]) -> Spread:
        """The same of values that come so many times each."""
        counts, total = [0] * (len(bounds) + 1), 0.0
        for value, times in values:
            counts[bisect_left(bounds, value)] += times
            total += value * times if math.isfinite(value) else 0.0
        return cls(labels, bounds, tuple(counts), total)


@dataclass(frozen=True)
class Family:
    """All series of one name. `unit` is what the name ends in (`seconds`), the `_total` of a counter left out."""

    name: str
    kind: Literal["gauge", "counter", "histogram"]
    help: str
    points: tuple[Point | Spread, ...]
    unit: str = ""


def to_text(families: Iterable[Family], *, openmetrics: bool) -> str:
    """The page, for either format. A family without a point is left out. Raises ValueError for NaN."""
    lines = [line for family in families if family.points for line in _family(family, openmetrics)]
    return "\n".join([*lines, *(["# EOF"] if openmetrics else [])]) + "\n"


def _family(family: Family, openmetrics: bool) -> Iterator[str]:
    total = "_total" if family.kind == "counter" else ""
    name = family.name + ("" if openmetrics else total)
    yield f"# HELP {name} {_escaped(family.help)}"
    yield f"# TYPE {name} {family.kind}"
    if family.unit and openmetrics:
        yield f"# UNIT {name} {family.unit}"
    for point in family.points:
        if isinstance(point, Spread):
            yield from _spread(family.name, point)
        else:
            yield f"{series_name(family.name + total, point.labels)} {_number(point.value)}"


def _spread(name: str, spread: Spread) -> Iterator[str]:
    for bound, count in zip((*spread.bounds, math.inf), accumulate(spread.counts), strict=True):
        yield f"{series_name(f'{name}_bucket', {**spread.labels, 'le': _number(bound)})} {count}"
    yield f"{series_name(f'{name}_sum', spread.labels)} {_number(spread.total)}"
    yield f"{series_name(f'{name}_count', spread.labels)} {sum(spread.counts)}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def _number(value: float) -> str:
    if math.isnan(value):
        raise ValueError("a missing value has no line")
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return repr(float(value))
