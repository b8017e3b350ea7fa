"""The page of /metrics is what Prometheus reads."""

from __future__ import annotations

from target_stack.gateway.instruments import Counter, Gauge, Histogram, Histograms
from target_stack.gateway.metrics import GatewayMetrics


def test_a_counter_prints_one_line_per_combination() -> None:
    counter = Counter("calls_total", "Calls.", ("kind",))
    counter.add("first")
    counter.add("retry", by=2.5)
    assert list(counter.lines()) == [
        "# HELP calls_total Calls.",
        "# TYPE calls_total counter",
        'calls_total{kind="first"} 1',
        'calls_total{kind="retry"} 2.5',
    ]


def test_label_values_are_escaped() -> None:
    counter = Counter("c", "d", ("k",))
    counter.add('a"b\\c\nd')
    assert list(counter.lines())[-1] == r'c{k="a\"b\\c\nd"} 1'


def test_a_counter_without_labels_starts_at_zero() -> None:
    assert list(Counter("c", "d").lines())[-1] == "c 0"


def test_a_gauge_reads_when_it_is_asked() -> None:
    values = [1.0, float("inf")]
    gauge = Gauge("g", "d", lambda: [({}, values.pop(0))])
    assert [list(gauge.lines())[-1] for _ in range(2)] == ["g 1", "g +Inf"]


def test_histogram_buckets_are_cumulative_and_inclusive() -> None:
    histogram = Histogram("h", "d", (0.5, 1.0))
    for value in (0.25, 0.5, 0.75, 4.0):
        histogram.observe(value)
    assert list(histogram.lines())[2:] == [
        'h_bucket{le="0.5"} 2',
        'h_bucket{le="1"} 3',
        'h_bucket{le="+Inf"} 4',
        "h_sum 5.5",
        "h_count 4",
    ]


def test_two_gateways_share_no_counts() -> None:
    one, other = GatewayMetrics(), GatewayMetrics()
    one.shed.add("queue_full")
    assert "queue_full" not in other.text()


def test_a_histogram_per_label_value_has_one_head() -> None:
    histograms = Histograms("h", "d", "replica", (1.0,))
    histograms.observe("b", 0.5)
    histograms.observe("a", 2.0)
    assert list(histograms.lines()) == [
        "# HELP h d",
        "# TYPE h histogram",
        'h_bucket{replica="a",le="1"} 0',
        'h_bucket{replica="a",le="+Inf"} 1',
        'h_sum{replica="a"} 2.0',
        'h_count{replica="a"} 1',
        'h_bucket{replica="b",le="1"} 1',
        'h_bucket{replica="b",le="+Inf"} 1',
        'h_sum{replica="b"} 0.5',
        'h_count{replica="b"} 1',
    ]
