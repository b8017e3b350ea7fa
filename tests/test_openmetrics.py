"""Metric families as text, read back by Prometheus' own parsers of both formats."""

from __future__ import annotations

import math

import pytest
from prometheus_client import parser as classic
from prometheus_client.openmetrics import parser as openmetrics

from chaos.openmetrics import Family, Point, Spread, to_text

EVIL = 'a "quoted" \\ back\nslash'
COUNTER = Family("x_requests", "counter", "Requests.", (Point({"load": EVIL}, 3.0),))
GAUGE = Family(
    "x_left_seconds", "gauge", "Time\nleft \\ over.", (Point({}, math.inf), Point({"a": "b"}, 0.25)), "seconds"
)
WAITS = Family(
    "x_wait_seconds", "histogram", "Waits.", (Spread.of({}, (0.1, 1.0), [0.1, 0.5, math.inf, 2.0]),), "seconds"
)
FAMILIES = (COUNTER, GAUGE, WAITS)


@pytest.mark.parametrize(("dialect", "reader"), [(False, classic), (True, openmetrics)])
def test_both_formats_are_read_back_by_the_reference_parser(dialect: bool, reader: object) -> None:
    text = to_text(FAMILIES, openmetrics=dialect)
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in reader.text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert samples == {
        ("x_requests_total", ("load", EVIL)): 3.0,
        ("x_left_seconds",): math.inf,
        ("x_left_seconds", ("a", "b")): 0.25,
        ("x_wait_seconds_bucket", ("le", "0.1")): 1.0,
        ("x_wait_seconds_bucket", ("le", "1.0")): 2.0,
        ("x_wait_seconds_bucket", ("le", "+Inf")): 4.0,
        ("x_wait_seconds_sum",): 2.6,
        ("x_wait_seconds_count",): 4.0,
    }


def test_a_page_without_counters_is_the_same_to_both() -> None:
    text = to_text((GAUGE, WAITS), openmetrics=True)
    read = [list(reader.text_string_to_metric_families(text)) for reader in (classic, openmetrics)]
    assert [f.samples for f in read[0]] == [f.samples for f in read[1]]
    assert [f.type for f in read[0]] == ["gauge", "histogram"]


def test_a_missing_value_is_never_written_as_nan() -> None:
    with pytest.raises(ValueError, match="no line"):
        to_text([Family("x", "gauge", "X.", (Point({}, math.nan),))], openmetrics=True)


def test_a_family_without_points_is_left_out() -> None:
    assert to_text([Family("x", "gauge", "X.", ())], openmetrics=True) == "# EOF\n"
