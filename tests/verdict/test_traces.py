"""The spans of a trace as a tree."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from chaos.journal.record import Span
from chaos.journal.spans import SpanTable
from chaos.verdict.traces import tree_of, trees_of


def span(span_id, parent_id="", start_s=0.0, trace_id="t"):
    return Span(trace_id, span_id, parent_id, "gateway", "caller", "engine", "", start_s, 1.0, "ok", 1, None, None)


def told(tree):
    return [(depth, each.span_id) for root in tree for depth, each in root.walk()]


def test_calls_hang_under_what_caused_them_in_order_of_time():
    spans = SpanTable.build(
        [span("c", "b", 3.0), span("d", "a", 2.0), span("b", "a", 1.0), span("a", "load", 0.5), span("x", trace_id="u")]
    )
    assert told(tree_of("t", spans)) == [(0, "a"), (1, "b"), (2, "c"), (1, "d")]


def test_each_send_of_a_client_is_a_root_of_its_own():
    spans = SpanTable.build([span("b", "second", 2.0), span("a", "first", 1.0)])
    assert told(tree_of("t", spans)) == [(0, "a"), (0, "b")]


def test_a_trace_without_spans_has_no_tree():
    assert trees_of(["t", "u"], SpanTable.build([span("a")])) == {
        "t": tree_of("t", SpanTable.build([span("a")])),
        "u": (),
    }


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdefg")), max_size=12))
def test_no_set_of_spans_is_too_odd_for_a_tree_and_none_is_told_twice(edges):
    spans = [span(name, parent, float(place)) for place, (name, parent) in enumerate(edges)]
    starts = [each.start_s for root in tree_of("t", SpanTable.build(spans)) for _, each in root.walk()]
    assert sorted(starts) == sorted(set(starts))
