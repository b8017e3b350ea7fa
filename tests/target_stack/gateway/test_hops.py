"""The gateway's spans: one for each request, one for each call that it makes, joined to what it sends."""

from __future__ import annotations

import json
from typing import Any

import pytest

from target_stack.spans import COLUMNS

CLIENT = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01"}


async def spans_of(stack: Any) -> list[dict[str, Any]]:
    """As a reader over HTTP gets them, without what background work left."""
    reply = await stack.get("/debug/spans?after=0")
    assert tuple(reply.json["columns"]) == COLUMNS
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in reply.json["spans"]]
    return [row for row in rows if row["trace_id"] == "a" * 32]


def parent_sent(headers: Any) -> str:
    return str(headers["traceparent"].split("-")[2])


async def test_a_request_and_each_of_its_calls_leave_a_span_that_joins_what_was_sent(serve: Any) -> None:
    async with serve() as stack:
        stack.only_a()
        await stack.chat(route="rag", headers=CLIENT)
        found = {span["name"]: span for span in await spans_of(stack)}
        assert set(found) == {"rag", "embedder", "vector-store", "engine"}
        assert (found["rag"]["kind"], found["rag"]["parent_id"]) == ("callee", "b" * 16)
        calls = [found[name] for name in ("embedder", "vector-store", "engine")]
        assert {(span["kind"], span["parent_id"]) for span in calls} == {("caller", found["rag"]["span_id"])}
        assert parent_sent(stack.a.headers[-1]) == found["engine"]["span_id"]
        assert parent_sent(stack.embedder.calls[-1][2]) == found["embedder"]["span_id"]
        assert found["engine"]["peer"] == "engine-a"
        assert [span["outcome"] for span in calls] == ["ok", "ok", "ok"]


@pytest.mark.parametrize(("resends", "outcomes"), [(0, ["busy", "busy"]), (1, ["resent", "busy"] * 2)])
async def test_a_hop_has_as_many_spans_as_calls_arrive_and_as_the_counter_says(
    serve: Any, resends: int, outcomes: list[str]
) -> None:
    async with serve(retry={"hop_resends": resends}, breaker={"kind": "none"}) as stack:
        stack.a.script = stack.b.script = (503,)
        await stack.chat(headers=CLIENT)
        spans = [span for span in await spans_of(stack) if span["name"] == "engine"]
        assert [span["outcome"] for span in spans] == outcomes
        arrived = [parent_sent(headers) for engine in (stack.a, stack.b) for headers in engine.headers]
        assert sorted(span["span_id"] for span in spans) == sorted(arrived)
        calls = stack.gateway.telemetry.metrics.upstream_calls
        counted = sum(
            calls.value("engine", engine, kind)
            for engine in ("engine-a", "engine-b")
            for kind in ("first", "retry", "hop_resend")
        )
        assert counted == len(spans)


async def test_an_answer_that_breaks_off_ends_its_span_in_the_word_for_it(serve: Any, sse: Any) -> None:
    async with serve() as stack:
        stack.a.script = (sse.frame("Hello"), "cut")
        stack.only_a()
        await stack.chat(headers=CLIENT)
        (call,) = [span for span in await spans_of(stack) if span["name"] == "engine"]
        assert (call["outcome"], call["output_tokens"]) == ("truncated", 1)


async def test_a_tools_calls_are_spans_too_each_try_its_own(serve: Any) -> None:
    async with serve(attempts=2) as stack:
        stack.tools.status = 500
        await stack.post("/v1/tools/open_ticket", json={}, headers={**CLIENT, "idempotency-key": "k"})
        spans = [span for span in await spans_of(stack) if span["name"] == "tool"]
        assert [span["attempt"] for span in spans] == [1, 2]
        assert [parent_sent(headers) for _, _, headers in stack.tools.calls] == [span["span_id"] for span in spans]


async def test_spans_after_no_number_are_refused(serve: Any) -> None:
    async with serve() as stack:
        reply = await stack.get("/debug/spans?after=x")
        assert (reply.status, json.loads(reply.text)["error"]) == (400, "after must be a sequence number")
