"""The Prometheus text format."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.probes.exposition import parse_metrics

TEXT = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{model_name="tiny",engine="0"} 3.0
gateway_upstream_calls_total{replica="a",kind="first",dependency="engine"} 12 1796020427000
gateway_ttft_seconds_bucket{le="0.5"} 4
gateway_ttft_seconds_sum 1.5e-3
gateway_ttft_seconds_count 4 # {trace_id="abc"} 0.3
gateway_ttft_seconds_created 1796020427.5
python_gc_objects_collected_total{generation="0"} 100
process_resident_memory_bytes 1048576
process_cpu_seconds_total 2.5
process_open_fds 12
odd{path="a \\"b\\" \\\\ {c}, d=\\"e\\"",} 1
nothing NaN
endless{le="+Inf"} +Inf
this is no sample
broken{a="b 1
"""


def test_series_have_one_canonical_name_and_unwanted_ones_are_left_out():
    assert parse_metrics(TEXT) == {
        'vllm:num_requests_running{engine="0",model_name="tiny"}': 3.0,
        'gateway_upstream_calls_total{dependency="engine",kind="first",replica="a"}': 12.0,
        "gateway_ttft_seconds_sum": 0.0015,
        "gateway_ttft_seconds_count": 4.0,
        "process_resident_memory_bytes": 1048576.0,
        "process_cpu_seconds_total": 2.5,
        'odd{path="a \\"b\\" \\\\ {c}, d=\\"e\\""}': 1.0,
    }


@pytest.mark.parametrize("text", ["", "# only a comment\n", "<html></html>"])
def test_no_series_is_an_empty_answer(text):
    assert parse_metrics(text) == {}


@given(st.text(max_size=200))
def test_no_text_is_an_exception(text):
    assert isinstance(parse_metrics(text), dict)


def test_a_memo_changes_nothing_but_the_cost() -> None:
    memo: dict[str, str | None] = {}
    later = TEXT.replace("3", "4")
    assert parse_metrics(TEXT) == parse_metrics(TEXT, memo)
    assert parse_metrics(later) == parse_metrics(later, memo)
    assert memo
