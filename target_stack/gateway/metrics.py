"""All series of the gateway in four layers: resources, inference, request path, content quality.

There is one registry per gateway, made by `GatewayMetrics`, never a global one. The request path is here, the other
layers are in `layers`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from target_stack.gateway.instruments import Counter, Gauge, Histogram, Metric
from target_stack.gateway.layers import ContentQuality, Inference, Resources

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


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
        self.queue_seconds = Histogram("gateway_queue_seconds", "From arrival to the start of the work.")
        self.ttft = Histogram("gateway_ttft_seconds", "From arrival to the first token of the answer.")
        self.retry_pauses = Counter(
            "gateway_retry_pauses_total",
            "Pauses before retries, by the half of their bound that they fell in.",
            ("half",),
        )
        for half in ("first", "second"):
            self.retry_pauses.add(half, by=0)
        self.request_seconds = Histogram("gateway_request_seconds", "From arrival to the end of the answer.")
        self.resources, self.inference, self.content = Resources(), Inference(), ContentQuality()
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
            self.queue_seconds,
            self.ttft,
            self.retry_pauses,
            self.request_seconds,
        ]

    def expect_calls(self, dependency: str, replica: str) -> None:
        """Start the counts of its calls at zero, so that a reader can tell `none` from `unknown`."""
        for kind in ("first", "retry"):
            self.upstream_calls.add(dependency, replica, kind, by=0)

    def gauge(self, name: str, doc: str, read: Callable[[], float]) -> None:
        """Add a gauge with one sample."""
        self.gauges(name, doc, lambda: [({}, read())])

    def gauges(self, name: str, doc: str, read: Callable[[], Iterable[tuple[Mapping[str, str], float]]]) -> None:
        """Add a gauge with labelled samples."""
        self._metrics.append(Gauge(name, doc, read))

    def text(self) -> str:
        """The page of /metrics, layer by layer from below; the names of the layers are comments to Prometheus."""
        layers = {
            "resources": self.resources.metrics,
            "inference": self.inference.metrics,
            "request path": self._metrics,
            "content quality": self.content.metrics,
        }
        return "".join(f"# layer: {name}\n{_lines(metrics)}" for name, metrics in layers.items())


def _lines(metrics: Iterable[Metric]) -> str:
    return "".join(f"{line}\n" for metric in metrics for line in metric.lines())
