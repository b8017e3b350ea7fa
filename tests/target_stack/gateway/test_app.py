"""The gateway as its clients see it, on real sockets between scripted upstreams."""

from __future__ import annotations

import asyncio
import gc
import io
from typing import Any

import pytest

pytestmark = pytest.mark.system


async def test_a_stream_comes_whole_and_says_who_served_it(serve: Any) -> None:
    async with serve() as stack:
        reply = await stack.chat()
        assert (reply.status, reply.content, reply.frames[-1]) == (200, "Hello there", "[DONE]")
        assert reply.headers["x-served-by"] in ("engine-a", "engine-b")
        assert reply.headers["Content-Type"] == "text/event-stream; charset=utf-8"
        assert "x-degraded" not in reply.headers
        assert len(reply.headers["x-trace-id"]) == 32


async def test_a_reply_without_stream_is_put_together(serve: Any, sse: Any) -> None:
    async with serve() as stack:
        usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
        stack.a.script = stack.b.script = (
            sse.frame("Hello"),
            sse.frame(" you", "length"),
            sse.data({"id": "chatcmpl-1", "choices": [], "usage": usage}),
            sse.DONE,
        )
        reply = await stack.chat(stream=False)
        choice = reply.json["choices"][0]
        assert reply.json["object"] == "chat.completion"
        assert (choice["message"]["content"], choice["finish_reason"]) == ("Hello you", "length")
        assert reply.json["usage"] == usage


async def test_trace_and_deadline_travel_to_the_engine(serve: Any) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    async with serve() as stack:
        headers = {"traceparent": f"00-{trace}-b7ad6b7169203331-01", "x-deadline-ms": "1500"}
        reply = await stack.chat(headers=headers)
        seen = (stack.a.headers or stack.b.headers)[0]
        assert reply.headers["x-trace-id"] == seen["x-request-id"] == trace
        assert seen["traceparent"].split("-")[1] == trace
        assert 0 < int(seen["x-deadline-ms"]) <= 1500


@pytest.mark.parametrize("where", ["before_first_token", "after_first_token", "no_stream"])
async def test_a_client_that_leaves_stops_the_engine_and_frees_its_slot(serve: Any, sse: Any, where: str) -> None:
    async with serve(deadline={}) as stack:
        stack.a.script = (30.0,) if where == "before_first_token" else (sse.frame("Hello"), 30.0)
        stack.only_a()
        body = {
            "model": "brownout-chat",
            "messages": [{"role": "user", "content": "Hi"}],
            "stream": where != "no_stream",
        }
        asking = asyncio.create_task(stack.session.post(f"{stack.url}/v1/chat/completions", json=body))
        await stack.until(lambda: stack.a.asked)
        if where == "after_first_token":
            reply = await asking
            await reply.content.readany()
            reply.close()
        else:
            asking.cancel()
        await stack.until(lambda: stack.a.left, within_s=1.0)
        await stack.until(lambda: not stack.gateway.admission.in_flight, within_s=1.0)
        assert stack.gateway.telemetry.metrics.requests.value("chat", "client_gone") == 1
        assert stack.events() == []


async def test_a_client_that_leaves_with_its_whole_answer_leaves_no_connection_open(serve: Any, sse: Any) -> None:
    async with serve() as stack:
        stack.a.script = (sse.frame("Hello", "stop"), sse.DONE, 30.0)  # all is said, but the reply does not end
        stack.only_a()
        reply = await stack.chat(headers={"Connection": "close"})
        assert reply.frames[-1] == "[DONE]"
        await stack.until(lambda: stack.a.left, within_s=0.05)  # sooner than the gateway waits for the last bytes
        await stack.until(lambda: not stack.gateway.admission.in_flight)
    gc.collect()  # an open connection would warn here, and a warning is an error


async def test_tools_are_forwarded_with_their_idempotency_key(serve: Any) -> None:
    async with serve() as stack:
        reply = await stack.post("/v1/tools/order_status", json={"order": 7}, headers={"idempotency-key": "k1"})
        path, body, headers = stack.tools.calls[0]
        params = body["params"]
        assert (reply.json, path, body["method"]) == ({"echo": {"order": 7}}, "/mcp", "tools/call")
        assert (params["name"], params["arguments"], params["_meta"]["idempotency-key"]) == (
            "order_status",
            {"order": 7},
            "k1",
        )
        assert headers["authorization"] == "Bearer gateway-token"
        assert 0 < int(headers["x-deadline-ms"]) <= 3000
        assert headers["traceparent"][3:35] == reply.headers["x-trace-id"]


async def test_a_tool_that_is_slow_ends_by_its_deadline_and_is_not_tried_twice(serve: Any) -> None:
    async with serve() as stack:
        stack.tools.delay_s = 1.0
        reply = await stack.post("/v1/tools/order_status", json={}, headers={"x-deadline-ms": "100"})
        assert (reply.status, reply.json["error"]["code"], len(stack.tools.calls)) == (504, "timeout", 1)


async def test_dead_tools_answer_503_with_a_time_to_come_again(serve: Any) -> None:
    async with serve() as stack:
        await stack.tools.stop()
        reply = await stack.post("/v1/tools/order_status", json={})
        assert (reply.status, reply.headers["Retry-After"], reply.json["error"]["code"]) == (503, "1", "unreachable")


async def test_embeddings_are_forwarded(serve: Any) -> None:
    async with serve() as stack:
        reply = await stack.post("/v1/embeddings", json={"input": ["a"], "model": "m"})
        assert reply.json == {"data": [{"embedding": [0.5, 0.25]}]}


@pytest.mark.parametrize(
    ("fields", "status", "param"),
    [
        ({"model": None}, 400, "model"),
        ({"model": "gpt-9"}, 404, "model"),
        ({"messages": []}, 400, "messages"),
        ({"messages": [{"role": "boss", "content": "x"}]}, 400, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 7}]}, 400, "messages[0].content"),
        ({"messages": [{"role": "user", "content": "x"}, 5]}, 400, "messages[1]"),
        ({"stream": "yes"}, 400, "stream"),
        ({"max_tokens": 0}, 400, "max_tokens"),
        ({"max_tokens": 10**400}, 400, "max_tokens"),
        ({"temperature": "hot"}, 400, "temperature"),
        ({"n": True}, 400, "n"),
        ({"stream_options": 1}, 400, "stream_options"),
    ],
)
async def test_a_bad_field_is_named_and_nothing_reaches_an_engine(
    serve: Any, fields: dict[str, Any], status: int, param: str
) -> None:
    async with serve() as stack:
        reply = await stack.chat(**fields)
        assert (reply.status, reply.json["error"]["param"]) == (status, param)
        assert stack.a.bodies + stack.b.bodies == []


@pytest.mark.parametrize(
    ("path", "options", "status"),
    [
        ("/v1/chat/completions", {"data": b"{"}, 400),
        ("/v1/chat/completions", {"data": b"[1]"}, 400),
        ("/v1/chat/completions", {"data": b"[" * 100_000}, 400),
        ("/v1/chat/completions", {"data": io.BytesIO(b"x" * ((1 << 20) + 1))}, 413),
        ("/v1/chat/completions", {"json": {}, "headers": {"x-priority": "boss"}}, 400),
        ("/v1/chat/completions", {"json": {}, "headers": {"x-deadline-ms": "soon"}}, 400),
        ("/v1/rag", {"json": {"model": "brownout-chat", "messages": [{"role": "system", "content": "x"}]}}, 400),
        ("/v1/tools/..%2Fetc", {"json": {}}, 404),
        ("/v1/embeddings", {"json": {}}, 400),
        ("/v1/completions", {"json": {}}, 404),
        ("/ping", {"json": {}}, 405),
    ],
)
async def test_bad_input_gets_openais_error_shape(serve: Any, path: str, options: dict[str, Any], status: int) -> None:
    async with serve() as stack:
        reply = await stack.post(path, **options)
        assert reply.status == status
        assert set(reply.json["error"]) == {"message", "type", "param", "code"}
        assert stack.a.bodies + stack.b.bodies == []


async def test_metrics_show_every_promised_series(serve: Any) -> None:
    async with serve() as stack:
        await stack.chat()
        text = (await stack.get("/metrics")).text
    for line in (
        'gateway_requests_total{route="chat",outcome="ok"} 1',
        "gateway_queue_depth 0",
        "gateway_inflight_requests 0",
        "gateway_retry_budget_tokens 10",
        'gateway_breaker_state{dependency="engine",replica="engine-a"} 0',
        'gateway_breaker_state{dependency="fallback-engine",replica="engine-small"} 0',
        'gateway_breaker_state{dependency="embedder",replica="embedder"} 0',
        'gateway_breaker_state{dependency="vector-store",replica="vector-store"} 0',
        'gateway_breaker_state{dependency="tool",replica="tool"} 0',
        'gateway_ttft_seconds_bucket{le="+Inf"} 1',
        "gateway_request_seconds_count 1",
        "# TYPE gateway_shed_total counter",
        "# TYPE gateway_fallback_total counter",
    ):
        assert line in text, line
    assert 'gateway_upstream_calls_total{dependency="engine",replica="engine-' in text
