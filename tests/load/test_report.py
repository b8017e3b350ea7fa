"""What a load says about itself."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from chaos.load.report import LoadReport, load_finished_fields, quantile


def test_a_quantile_is_the_nearest_rank():
    assert quantile([3.0, 1.0, 2.0, 4.0], 0.5) == 2.0
    assert quantile([3.0, 1.0, 2.0, 4.0], 0.99) == 4.0
    assert quantile([], 0.5) is None


@given(st.lists(st.floats(0, 10), min_size=1), st.floats(0.01, 1.0))
def test_at_least_the_share_lies_at_or_below_a_quantile(values, share):
    found = quantile(values, share)
    assert sum(value <= found for value in values) >= share * len(values) - 1e-9


def test_all_loads_go_into_one_record():
    reports = (LoadReport("a", 3, 2, 1, (0.1, 0.3)), LoadReport("b", 1, 1, 1, (0.2,)))
    assert load_finished_fields(reports) == {
        "loads": {"a": {"planned": 3, "sent": 2, "finished": 1}, "b": {"planned": 1, "sent": 1, "finished": 1}},
        "lateness_s_p50": 0.2,
        "lateness_s_p99": 0.3,
    }


def test_nothing_sent_has_no_lateness():
    assert load_finished_fields(())["lateness_s_p50"] is None
