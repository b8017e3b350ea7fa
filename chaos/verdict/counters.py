"""Prometheus series over time: gauges as last seen, counters as steady growth that survives restarts and late series.

A counter that falls was reset by a restart: what it shows then is all new. A labelled series that appears after its
target was already being scraped started at zero with the scrape before: the first retry of a run is growth, not the
starting point.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from chaos.journal.sketch import Integers
from chaos.journal.tables import Points, ReadingTable
from chaos.verdict.statistics import Floats

CALLS = "gateway_upstream_calls_total"
"""What the gateway counts of its calls, by `dependency` and `replica`."""
WAITING = ("gateway_queue_depth", "vllm:num_requests_waiting")
"""Gauges of requests that wait to start, by the names that the bundled gateway and vLLM give them."""

_NAMED = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})?")
_NAMESPACE = re.compile(r"[_:{]")
_LABEL = re.compile(r"""([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*(?:"([^"]*)"|([^",{}=]+))""")


class NotASeries(ValueError):
    """Text that is not `name` or `name{label=value,...}`."""


def parse_selector(text: str) -> tuple[str, dict[str, str]]:
    """`name{label=value,other="value"}` as name and labels; quotes may be left out. Raises NotASeries."""
    named = _NAMED.fullmatch(text.strip())
    if not named:
        raise NotASeries(f"`{text}` is not a series; write name or name{{label=value}}")
    labels: dict[str, str] = {}
    for part in filter(None, (p.strip() for p in (named[2] or "").split(","))):
        label = _LABEL.fullmatch(part)
        if not label:
            raise NotASeries(f"`{part}` in `{text}` is not label=value")
        labels[label[1]] = label[2] if label[2] is not None else label[3].strip()
    return named[1], labels


@dataclass(frozen=True)
class Track:
    """One series of one target over time. `resets` are the last looks before it fell, where it has grown over that."""

    target: str
    series: str
    t: Floats
    value: Floats
    resets: tuple[float, ...] = ()

    def growth(self) -> Track:
        """The same track as a counter that never falls."""
        steps = np.diff(self.value)
        grown = np.where(steps < 0, self.value[1:], steps)
        resets = tuple(self.t[:-1][steps < 0].tolist())
        value = self.value[0] + np.concatenate(([0.0], np.cumsum(grown)))
        return Track(self.target, self.series, self.t, value, resets)

    def moved(self) -> bool:
        """Whether it ever changed."""
        return bool(len(self.value)) and bool((self.value != self.value[0]).any())


def tracks(points: Points) -> tuple[Track, ...]:
    """Points split by target and series, each in order of time."""
    key = points.target.codes.astype(np.int64) * len(points.series.values) + points.series.codes
    order = np.lexsort((points.t, key))
    parts = np.split(order, np.flatnonzero(np.diff(key[order])) + 1) if len(order) else []
    found = (_track(points, rows) for rows in parts)
    return tuple(sorted(found, key=lambda track: (track.target, track.series)))


def _track(points: Points, rows: Integers) -> Track:
    target, series = points.target[int(rows[0])], points.series[int(rows[0])]
    return Track(str(target), str(series), points.t[rows], points.value[rows])


@dataclass(frozen=True)
class Counter:
    """The sum of all matching counter series."""

    parts: tuple[Track, ...]

    @property
    def moved(self) -> bool:
        """Whether any part grew during the run."""
        return any(part.moved() for part in self.parts)

    @property
    def first(self) -> float:
        """The earliest time that is covered."""
        return min(float(part.t[0]) for part in self.parts)

    @property
    def last(self) -> float:
        """The latest time that is covered."""
        return max(float(part.t[-1]) for part in self.parts)

    def at(self, times: Floats) -> Floats:
        """The growing sum at these times, straight between two scrapes, level before the first and after the last."""
        total = np.zeros(len(times))
        for part in self.parts:
            total += np.interp(times, part.t, part.value)
        return total


def counter(readings: ReadingTable, name: str, labels: Mapping[str, str], target: str | None = None) -> Counter | None:
    """The growth of every series of this name and labels, summed; None when there is none."""
    found = tracks(readings.select(name, labels, target))
    if not found:
        return None
    return Counter(tuple(_from_zero(track, scrapes(readings, name, track.target)).growth() for track in found))


def scrapes(readings: ReadingTable, name: str, target: str) -> Floats:
    """When the exporter was read: any series of the same namespace (`gateway_...`) tells, also before this one came."""
    namespace = _NAMESPACE.split(name, maxsplit=1)[0]
    own = [series for series in readings.series.values if _NAMESPACE.split(series, maxsplit=1)[0] == namespace]
    rows = readings.series.isin(own) & (readings.target == target)
    return np.asarray(readings.t[rows], dtype=np.float64)


def _from_zero(track: Track, scrapes: Floats) -> Track:
    """Begin a late series at zero with the last scrape of its target that did not have it yet."""
    before = scrapes[scrapes < track.t[0]]
    if not len(before):
        return track
    return Track(
        track.target,
        track.series,
        np.concatenate(([before.max()], track.t)),
        np.concatenate(([0.0], track.value)),
    )
