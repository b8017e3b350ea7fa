"""The ring of spans that every part keeps."""

from __future__ import annotations

import asyncio
import json

import pytest

from target_stack.gateway.hops import Hop
from target_stack.gateway.trace import Trace
from target_stack.spans import COLUMNS, SpanRing, place_of, serving

CALLER = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01"}


class Clock:
    now = 10.0

    def __call__(self):
        return self.now


def rows(ring, after=0):
    return [dict(zip(COLUMNS, row, strict=True)) for row in ring.after(after)["spans"]]


def ring(size=100):
    return SpanRing(Clock(), 0x10, size)


def test_a_page_holds_what_is_new_oldest_first_and_says_how_much_there_is():
    spans = ring()
    for name in "abcde":
        spans.add(name)
    assert spans.after(1, most=2) == {"columns": COLUMNS, "spans": [(2, "b"), (3, "c")], "last": 5}
    assert spans.after(5)["spans"] == spans.after(99)["spans"] == []


def test_a_reader_sees_in_the_numbers_what_was_forgotten():
    spans = ring(size=2)
    for name in "abcd":
        spans.add(name)
    assert spans.after(0)["spans"] == [(3, "c"), (4, "d")]


def test_a_page_is_asked_for_by_a_number():
    assert ring().page("x")[0] == 400
    assert json.loads(ring().page(None)[1])["last"] == 0


def test_ids_are_never_zero_and_never_twice():
    spans = SpanRing(Clock(), (1 << 64) - 2)
    assert [spans.new_id() for _ in range(3)] == ["f" * 16, "0" * 15 + "1", "0" * 15 + "2"]


@pytest.mark.parametrize("header", [None, "", "00-xyz", f"00-{'a' * 32}-{'b' * 16}"])
def test_a_call_without_a_valid_traceparent_has_no_place(header):
    assert place_of(header) == ("", "")


def test_a_served_call_is_written_down_under_its_callers_span():
    spans = ring()
    with serving(spans, CALLER, "embeddings") as span:
        spans.clock.now = 10.5
        span.prompt_tokens = 3
    assert rows(spans) == [
        {
            "seq": 1, "trace_id": "a" * 32, "span_id": f"{0x11:016x}", "parent_id": "b" * 16, "kind": "callee",
            "name": "embeddings", "peer": "", "start": 10.0, "end": 10.5, "outcome": "ok", "attempt": 1,
            "prompt_tokens": 3, "output_tokens": None,
        }
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("problem", "outcome"),
    [(asyncio.CancelledError(), "caller_gone"), (ConnectionResetError(), "caller_gone"), (KeyError("x"), "error")],
)
def test_a_call_that_failed_is_written_down_too(problem, outcome):
    spans = ring()
    with pytest.raises(type(problem)), serving(spans, {}, "chat"):
        raise problem
    assert rows(spans)[0]["outcome"] == outcome


def test_each_send_of_a_hop_is_a_span_of_its_own_under_the_same_request():
    spans = ring()
    hop = Hop(spans, Trace("t", "request"), "engine", "engine-a", 1)
    places = [hop.trace.parent_id]
    hop.again()
    places.append(hop.trace.parent_id)
    hop.end("ok", 5, 6)
    hop.end("cancelled")
    found = rows(spans)
    assert [each["span_id"] for each in found] == places
    assert [(each["parent_id"], each["outcome"], each["attempt"]) for each in found] == [
        ("request", "resent", 1),
        ("request", "ok", 2),
    ]
    assert [each["output_tokens"] for each in found] == [None, 6]
