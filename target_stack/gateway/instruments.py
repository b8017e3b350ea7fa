"""Prometheus' instruments: counters, histograms and gauges that are read when somebody asks. Text format 0.0.4."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, Protocol

Labels = tuple[str, ...]
LATENCY_BUCKETS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 10.0, 20.0)


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def series(name: str, labels: Mapping[str, str]) -> str:
    """`name{a="x"}`, or the bare name without labels."""
    inside = ",".join(f'{key}="{_escaped(value)}"' for key, value in labels.items())
    return f"{name}{{{inside}}}" if inside else name


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


class Metric(Protocol):
    """Anything that can print its lines."""

    def lines(self) -> Iterator[str]:
        """Help, type and samples."""
        ...


def head(name: str, kind: str, doc: str) -> Iterator[str]:
    """Help and type of a metric."""
    yield f"# HELP {name} {doc}"
    yield f"# TYPE {name} {kind}"


class Counter:
    """Counts up, per combination of label values."""

    def __init__(self, name: str, doc: str, label_names: Sequence[str] = ()) -> None:
        self._name, self._doc, self._label_names = name, doc, tuple(label_names)
        self._values: dict[Labels, float] = {} if label_names else {(): 0.0}

    def add(self, *labels: str, by: float = 1.0) -> None:
        """One more of this kind; label values in the order of the names."""
        self._values[labels] = self._values.get(labels, 0.0) + by

    def value(self, *labels: str) -> float:
        """The count so far."""
        return self._values.get(labels, 0.0)

    def lines(self) -> Iterator[str]:
        """See Metric."""
        yield from head(self._name, "counter", self._doc)
        for labels, value in sorted(self._values.items()):
            yield f"{series(self._name, dict(zip(self._label_names, labels, strict=True)))} {_number(value)}"


class Gauge:
    """Reads its samples from a function at every scrape, so it cannot be stale."""

    def __init__(
        self,
        name: str,
        doc: str,
        read: Callable[[], Iterable[tuple[Mapping[str, str], float]]],
        kind: Literal["gauge", "counter"] = "gauge",
    ) -> None:
        self._name, self._doc, self._read, self._kind = name, doc, read, kind

    def lines(self) -> Iterator[str]:
        """See Metric."""
        yield from head(self._name, self._kind, self._doc)
        for labels, value in self._read():
            yield f"{series(self._name, labels)} {_number(value) if value != float('inf') else '+Inf'}"


class Histogram:
    """Counts of observations at or below each bound, in seconds."""

    def __init__(self, name: str, doc: str, bounds: Sequence[float] = LATENCY_BUCKETS_S) -> None:
        self._name, self._doc, self._bounds = name, doc, tuple(bounds)
        self._counts = [0] * (len(self._bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """One observation."""
        self._counts[bisect.bisect_left(self._bounds, value)] += 1
        self._sum += value

    def lines(self) -> Iterator[str]:
        """See Metric."""
        yield from head(self._name, "histogram", self._doc)
        yield from self.samples({})

    def samples(self, labels: Mapping[str, str]) -> Iterator[str]:
        """The sample lines, with these labels on each."""
        total = 0
        for bound, count in zip((*map(_number, self._bounds), "+Inf"), self._counts, strict=True):
            total += count
            yield f"{series(f'{self._name}_bucket', {**labels, 'le': bound})} {total}"
        yield f"{series(f'{self._name}_sum', labels)} {self._sum!r}"
        yield f"{series(f'{self._name}_count', labels)} {total}"


class Histograms:
    """One histogram per value of a label."""

    def __init__(self, name: str, doc: str, label: str, bounds: Sequence[float] = LATENCY_BUCKETS_S) -> None:
        self._name, self._doc, self._label, self._bounds = name, doc, label, bounds
        self._children: dict[str, Histogram] = {}

    def observe(self, label: str, value: float) -> None:
        """One observation."""
        child = self._children.get(label)
        if child is None:
            child = self._children[label] = Histogram(self._name, self._doc, self._bounds)
        child.observe(value)

    def lines(self) -> Iterator[str]:
        """See Metric."""
        yield from head(self._name, "histogram", self._doc)
        for value, child in sorted(self._children.items()):
            yield from child.samples({self._label: value})
