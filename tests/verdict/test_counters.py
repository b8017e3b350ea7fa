"""Counters grow through restarts and late series; selectors are read as people write them."""

import numpy as np
import pytest

from chaos.journal.record import ReadingRow
from chaos.journal.tables import ReadingTable
from chaos.verdict.counters import NotASeries, counter, parse_selector


def grown(rows: list[tuple[float, str, float]], name: str = "calls", **labels: str) -> list[float]:
    table = ReadingTable.build(ReadingRow(t, "gateway", series, value) for t, series, value in rows)
    found = counter(table, name, labels)
    assert found is not None
    at = found.at(np.array([0.0, 1.0, 2.0, 3.0]))
    return (at - at[0]).tolist()


def test_a_restart_is_growth_from_zero() -> None:
    assert grown([(0, "calls", 100), (1, "calls", 105), (2, "calls", 3), (3, "calls", 4)]) == [0, 5, 8, 9]


def test_labelled_series_add_up() -> None:
    rows = [(t, f'calls{{kind="{kind}"}}', t * step) for t in range(4) for kind, step in (("first", 1), ("retry", 10))]
    assert grown(rows) == [0, 11, 22, 33]
    assert grown(rows, kind="retry") == [0, 10, 20, 30]


def test_a_late_series_began_at_zero_with_the_scrape_before() -> None:
    """The first seven retries of a run are growth, not the starting point."""
    rows = [(t, 'calls{kind="first"}', 50.0) for t in range(4)] + [
        (2, 'calls{kind="retry"}', 7),
        (3, 'calls{kind="retry"}', 9),
    ]
    assert grown(rows) == [0, 0, 7, 9]


def test_the_first_call_of_a_run_is_growth_where_the_exporter_was_read_before() -> None:
    """Another series of the same exporter proves the earlier scrape; a health check of the target does not."""
    late = [(2, "gw_calls", 7.0), (3, "gw_calls", 9.0)]
    assert grown([(0, "gw_inflight", 1.0), (1, "gw_inflight", 1.0), *late], "gw_calls") == [0, 0, 7, 9]
    assert grown([(1, "health_up", 1.0), *late], "gw_calls") == [0, 0, 0, 2]


def test_a_series_that_is_not_there_is_none() -> None:
    assert counter(ReadingTable.build([]), "calls", {}) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("up", ("up", {})),
        ("vllm:num_requests_running", ("vllm:num_requests_running", {})),
        ("a{b=c}", ("a", {"b": "c"})),
        ('a{b="c d", e=f-1}', ("a", {"b": "c d", "e": "f-1"})),
    ],
)
def test_a_selector_is_read(text: str, expected: tuple[str, dict[str, str]]) -> None:
    assert expected == parse_selector(text)


@pytest.mark.parametrize("text", ["", "1a", "a{b}", "a{b=c", "rate(a[5m])"])
def test_what_is_no_selector_is_refused(text: str) -> None:
    with pytest.raises(NotASeries):
        parse_selector(text)
