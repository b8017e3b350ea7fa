"""Counters, gauges, histograms and summaries in Prometheus' text format, as the Python client writes them.

Numbers are plain attributes, so that counting costs nothing on the token path; text is made only when somebody scrapes.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Labels = Mapping[str, str]


class Number:
    """A counter or gauge with one set of labels."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        """Start at 0."""
        self.value = 0.0

    def samples(self, name: str, labels: Labels) -> Iterator[str]:
        """Its line."""
        yield _line(name, labels, self.value)


class Summary:
    """A count and a sum."""

    __slots__ = ("count", "sum")

    def __init__(self) -> None:
        """Start empty."""
        self.count = 0
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count one value."""
        self.count += 1
        self.sum += value

    def samples(self, name: str, labels: Labels) -> Iterator[str]:
        """Its two lines."""
        yield _line(f"{name}_count", labels, self.count)
        yield _line(f"{name}_sum", labels, self.sum)


class Histogram(Summary):
    """Counts per bucket; `bounds` are inclusive upper bounds, rising, without infinity."""

    __slots__ = ("bounds", "counts")

    def __init__(self, bounds: Sequence[float]) -> None:
        """Start empty."""
        super().__init__()
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)

    def observe(self, value: float) -> None:
        """Count one value."""
        super().observe(value)
        self.counts[bisect_left(self.bounds, value)] += 1

    def samples(self, name: str, labels: Labels) -> Iterator[str]:
        """One line a bucket, cumulative, then count and sum."""
        edges = [*map(number_text, self.bounds), "+Inf"]
        for edge, total in zip(edges, itertools.accumulate(self.counts), strict=True):
            yield _line(f"{name}_bucket", {**labels, "le": edge}, total)
        yield from super().samples(name, labels)


Instrument = TypeVar("Instrument", Number, Summary, Histogram)


@dataclass
class Family(Generic[Instrument]):
    """All instruments of one metric name. `kind` is counter, gauge, histogram or summary.

    `created` (unix seconds) adds the `_created` gauge that the Python client gives to everything that accumulates.
    """

    name: str
    kind: str
    help: str
    created: float | None = None
    children: list[tuple[Labels, Instrument]] = field(default_factory=list)

    def add(self, labels: Labels, instrument: Instrument) -> Instrument:
        """One more child."""
        self.children.append((labels, instrument))
        return instrument

    def lines(self) -> Iterator[str]:
        """The family's text."""
        yield from self._head(self.name, self.kind)
        for labels, instrument in self.children:
            yield from instrument.samples(self.name, labels)
        if self.created is not None and self.children:
            name = f"{self.name.removesuffix('_total') if self.kind == 'counter' else self.name}_created"
            yield from self._head(name, "gauge")
            for labels, _ in self.children:
                yield _line(name, labels, self.created)

    def _head(self, name: str, kind: str) -> Iterator[str]:
        yield f"# HELP {name} {self.help}"
        yield f"# TYPE {name} {kind}"


def number_text(value: float) -> str:
    """A number as the Python client writes it: whole numbers with `.0`, from a million on with an exponent."""
    text = repr(float(value))
    point = text.find(".")
    if text[0] == "-" or "e" in text or point <= 6:
        return text
    digits = (text[0] + "." + text[1:point] + text[point + 1 :]).rstrip("0").rstrip(".")
    return f"{digits}e+{point - 1:02d}"


def _line(name: str, labels: Labels, value: float) -> str:
    inside = ",".join(f'{key}="{_escaped(labels[key])}"' for key in sorted(labels))
    return f"{name}{{{inside}}} {number_text(value)}" if inside else f"{name} {number_text(value)}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
