"""A tiny Prometheus registry: counters, histograms and gauges that are read when somebody asks.

Text format version 0.0.4. There is one registry per gateway, made by `GatewayMetrics`, never a global one.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

Labels = tuple[str, ...]
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PAUSE_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 1.0)
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


def _head(name: str, kind: str, doc: str) -> Iterator[str]:
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
        yield from _head(self._name, "counter", self._doc)
        for labels, value in sorted(self._values.items()):
            yield f"{series(self._name, dict(zip(self._label_names, labels, strict=True)))} {_number(value)}"


class Gauge:
    """Reads its samples from a function at every scrape, so it cannot be stale."""

    def __init__(self, name: str, doc: str, read: Callable[[], Iterable[tuple[Mapping[str, str], float]]]) -> None:
        self._name, self._doc, self._read = name, doc, read

    def lines(self) -> Iterator[str]:
        """See Metric."""
        yield from _head(self._name, "gauge", self._doc)
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
        yield from _head(self._name, "histogram", self._doc)
        total = 0
        for bound, count in zip((*map(_number, self._bounds), "+Inf"), self._counts, strict=True):
            total += count
            yield f'{self._name}_bucket{{le="{bound}"}} {total}'
        yield f"{self._name}_sum {self._sum!r}"
        yield f"{self._name}_count {total}"


class GatewayMetrics:
    """All series of the gateway; gauges are added by whoever owns what they show."""

    def __init__(self) -> None:
        self.requests = Counter("gateway_requests_total", "Finished requests.", ("route", "outcome"))
        self.upstream_calls = Counter(
            "gateway_upstream_calls_total",
            "Calls to dependencies, probes not counted.",
            ("dependency", "replica", "kind"),
        )
        self.shed = Counter("gateway_shed_total", "Refused before any work: queue, drain, retry_budget.", ("reason",))
        self.fallback = Counter("gateway_fallback_total", "Answers from further down the fallback chain.", ("reason",))
        self.cache_requests = Counter(
            "gateway_cache_requests_total", "Looks for a kept answer; off: the caller asked for none.", ("result",)
        )
        self.single_flight_followers = Counter(
            "gateway_single_flight_followers_total", "Requests that shared an answer which was under way for another."
        )
        self.probes = Counter("gateway_probes_total", "One-token probes of ejected replicas.", ("replica", "result"))
        self.release_answers = Counter(
            "gateway_release_answers_total",
            "Requests by release: whole, or broken (error, fallback, client gone).",
            ("release", "result"),
        )
        self.release_tokens = Counter("gateway_release_tokens_total", "Tokens sent by release.", ("release",))
        self.ttft = Histogram("gateway_ttft_seconds", "From arrival to the first token of the answer.")
        self.retry_pause_seconds = Histogram(
            "gateway_retry_pause_seconds", "Pauses before the gateway's own retries.", PAUSE_BUCKETS_S
        )
        self.request_seconds = Histogram("gateway_request_seconds", "From arrival to the end of the answer.")
        self._metrics: list[Metric] = [
            self.requests,
            self.upstream_calls,
            self.shed,
            self.fallback,
            self.cache_requests,
            self.single_flight_followers,
            self.probes,
            self.release_answers,
            self.release_tokens,
            self.ttft,
            self.retry_pause_seconds,
            self.request_seconds,
        ]

    def gauge(self, name: str, doc: str, read: Callable[[], float]) -> None:
        """Add a gauge with one sample."""
        self.gauges(name, doc, lambda: [({}, read())])

    def gauges(self, name: str, doc: str, read: Callable[[], Iterable[tuple[Mapping[str, str], float]]]) -> None:
        """Add a gauge with labelled samples."""
        self._metrics.append(Gauge(name, doc, read))

    def text(self) -> str:
        """The page of /metrics."""
        return "".join(f"{line}\n" for metric in self._metrics for line in metric.lines())
