"""W3C trace context."""

from __future__ import annotations

import random
import re

import pytest

from target_stack.gateway.trace import Trace, trace_of

CALLER = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"


def test_the_callers_trace_goes_on_with_a_span_of_our_own() -> None:
    trace = trace_of({"traceparent": CALLER, "tracestate": "vendor=1,other=2"}, random.Random(1))
    assert (trace.trace_id, trace.flags, trace.state) == ("0af7651916cd43dd8448eb211c80319c", "00", "vendor=1,other=2")
    assert trace.parent_id != "b7ad6b7169203331"
    assert trace.headers() == {
        "traceparent": f"00-0af7651916cd43dd8448eb211c80319c-{trace.parent_id}-00",
        "tracestate": "vendor=1,other=2",
    }


@pytest.mark.parametrize(
    "sent",
    [
        {},
        {"traceparent": CALLER.replace("0af7651916cd43dd8448eb211c80319c", "0" * 32), "tracestate": "a=1"},
        {"traceparent": CALLER.replace("b7ad6b7169203331", "0" * 16), "tracestate": "a=1"},
        {"traceparent": CALLER.upper(), "tracestate": "a=1"},
        {"traceparent": CALLER + "-more", "tracestate": "a=1"},
        {"tracestate": "a=1"},
    ],
)
def test_what_does_not_parse_starts_a_new_trace_without_the_callers_state(sent: dict[str, str]) -> None:
    headers = trace_of(sent, random.Random(1)).headers()
    assert list(headers) == ["traceparent"]
    assert re.fullmatch(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-01", headers["traceparent"])


@pytest.mark.parametrize("state", ["x" * 513, "a=1\r\nevil: header", "a=\x00"])
def test_a_state_that_could_break_a_header_is_left_out(state: str) -> None:
    assert "tracestate" not in trace_of({"traceparent": CALLER, "tracestate": state}, random.Random(1)).headers()


def test_the_sql_comment_is_one_comment() -> None:
    assert Trace("a" * 32, "b" * 16).comment() == f"/*traceparent='00-{'a' * 32}-{'b' * 16}-01'*/"
