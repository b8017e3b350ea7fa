"""The gateway as its clients see it, on real sockets between scripted upstreams."""

from __future__ import annotations

import asyncio
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


async def test_a_refused_replica_is_ejected_and_the_other_one_answers(serve: Any) -> None:
    async with serve(outlier={"liveness_period_s": 60}) as stack:
        await stack.a.stop()
        stack.only_a()
        reply = await stack.chat()
        assert (reply.content, reply.headers["x-served-by"]) == ("Hello there", "engine-b")
        assert stack.events("replica_ejected")[0] | {"seq": 0, "mono": 0} == {
            "seq": 0,
            "mono": 0,
            "name": "replica_ejected",
            "dependency": "engine",
            "replica": "engine-a",
            "reason": "unreachable",
        }


async def test_a_dead_replica_is_noticed_without_traffic_and_comes_back_by_a_probe(serve: Any) -> None:
    async with serve() as stack:
        await stack.a.stop()
        await stack.until(lambda: stack.events("replica_ejected"), within_s=2)
        await stack.a.start()
        await stack.until(lambda: stack.events("replica_restored"), within_s=3)
        assert stack.events("replica_restored")[0]["replica"] == "engine-a"


async def test_an_engine_that_says_it_is_dead_leaves_rotation(serve: Any) -> None:
    async with serve() as stack:
        stack.a.ping_status = 503
        await stack.until(lambda: stack.events("replica_ejected"), within_s=2)


async def test_a_frozen_replica_is_cut_ejected_and_another_answers(serve: Any) -> None:
    async with serve() as stack:
        stack.a.frozen = True
        stack.only_a()
        reply = await stack.chat()
        assert (reply.content, reply.headers["x-served-by"]) == ("Hello there", "engine-b")
        assert stack.events("replica_ejected")[0]["reason"] == "no_first_token"
        await stack.until(lambda: stack.a.left)
        stack.a.frozen = False
        await stack.until(lambda: stack.events("replica_restored"))


async def test_once_a_frozen_replica_is_found_out_nobody_waits_for_it_any_longer(serve: Any) -> None:
    async with serve(deadline={"first_token_s": 1.5, "inter_token_s": 0.3}) as stack:
        stack.a.frozen = True
        stack.only_a()
        first = asyncio.create_task(stack.chat())
        await asyncio.sleep(1.0)
        second = asyncio.create_task(stack.chat())
        replies = await asyncio.gather(first, second)
        assert {reply.content for reply in replies} == {"Hello there"}
        assert [len(stack.a.asked), len(stack.events("replica_ejected"))] == [2, 1]
        assert replies[1].took_s < 1.3  # its own limit would be 1.5 s


async def test_with_all_engines_dead_the_small_model_answers_and_says_so(serve: Any) -> None:
    async with serve() as stack:
        await stack.a.stop()
        await stack.b.stop()
        reply = await stack.chat()
        assert (reply.headers["x-degraded"], reply.headers["x-served-by"]) == ("fallback_model", "engine-small")
        assert stack.small.asked[0]["model"] == "brownout-small"
        assert (await stack.get("/health")).status == 200


@pytest.mark.parametrize("stream", [True, False])
async def test_with_everything_dead_a_text_hands_over_to_people(serve: Any, stream: bool) -> None:
    async with serve() as stack:
        for engine in (stack.a, stack.b, stack.small):
            await engine.stop()
        reply = await stack.chat(stream=stream)
        text = reply.content if stream else reply.json["choices"][0]["message"]["content"]
        assert (reply.status, reply.headers["x-degraded"], "support team" in text) == (200, "canned", True)


async def test_health_is_bad_when_nobody_can_answer(serve: Any) -> None:
    async with serve() as stack:
        for engine in (stack.a, stack.b, stack.small):
            await engine.stop()
        for _ in range(8):
            await stack.chat()
        assert (await stack.get("/health")).status == 503
        assert (await stack.get("/ping")).status == 200


@pytest.mark.parametrize("how", ["error_frame", "abort", "truncated", "done_only", "malformed", 500, 502, 503])
async def test_a_failure_before_any_content_is_retried_elsewhere(serve: Any, sse: Any, how: Any) -> None:
    async with serve() as stack:
        stack.a.script = {
            "error_frame": (sse.frame(""), sse.ENGINE_DIED, sse.DONE),
            "abort": (sse.frame("", "abort"), sse.DONE),
            "truncated": (sse.frame(""), "cut"),
            "done_only": (sse.frame(""), sse.DONE),
            "malformed": (b"data: {nonsense\n\n",),
        }.get(how, (how,))
        stack.only_a()
        reply = await stack.chat()
        assert (len(stack.a.asked), len(stack.b.asked)) == (1, 1)
        assert (reply.content, reply.headers["x-served-by"]) == ("Hello there", "engine-b")
        assert "error" not in reply.text


@pytest.mark.parametrize("how", ["error_frame", "abort", "truncated", "done_only", "stalled"])
async def test_a_failure_after_content_ends_in_one_error_frame_and_no_done(serve: Any, sse: Any, how: str) -> None:
    async with serve() as stack:
        tail = {
            "error_frame": (sse.ENGINE_DIED, sse.DONE),
            "abort": (sse.frame("", "abort"), sse.DONE),
            "truncated": ("cut",),
            "done_only": (sse.DONE,),
            "stalled": (30.0,),
        }[how]
        stack.a.script = (sse.frame("Hello"), 0.01, *tail)
        stack.only_a()
        reply = await stack.chat()
        assert reply.frames[-1]["error"]["code"] == {"abort": "aborted", "done_only": "truncated"}.get(how, how)
        assert "[DONE]" not in reply.text
        assert stack.b.asked == []


async def test_a_broken_answer_is_replaced_while_no_stream_was_asked_for(serve: Any, sse: Any) -> None:
    async with serve() as stack:
        stack.a.script = (sse.frame("Hel"), sse.ENGINE_DIED, sse.DONE)
        stack.only_a()
        reply = await stack.chat(stream=False)
        assert reply.json["choices"][0]["message"]["content"] == "Hello there"


async def test_a_missing_terminator_does_not_hold_the_client(serve: Any, sse: Any) -> None:
    async with serve() as stack:
        stack.a.script = (sse.frame("Hello", "stop"), 30.0)
        stack.only_a()
        reply = await stack.chat()
        assert (reply.frames[-1], reply.took_s < 5) == ("[DONE]", True)


async def test_an_engines_refusal_reaches_the_client_word_for_word_and_is_not_retried(serve: Any) -> None:
    async with serve() as stack:
        stack.a.script = (400,)
        stack.only_a()
        reply = await stack.chat()
        assert (reply.status, reply.json["error"]["param"]) == (400, "input_tokens")
        assert stack.b.asked == []


async def test_a_short_deadline_of_the_caller_does_not_eject_a_healthy_replica(serve: Any, sse: Any) -> None:
    async with serve() as stack:
        slow = (0.2, sse.frame("Hello", "stop"), sse.DONE)
        stack.a.script = stack.b.script = stack.small.script = slow
        for _ in range(4):
            reply = await stack.chat(headers={"x-deadline-ms": "50"})
            assert reply.headers["x-degraded"] == "canned"
        assert stack.events() == []


async def test_rag_sends_the_documents_and_names_them(serve: Any) -> None:
    async with serve() as stack:
        reply = await stack.chat(route="rag")
        asked = (stack.a.asked or stack.b.asked)[0]["messages"]
        assert reply.headers["x-documents"] == "doc-17,doc-3"
        assert asked[0]["role"] == "system"
        assert asked[1]["content"] == (
            "Context:\n[doc-17] Headphones can be returned within 45 days.\n[doc-3] Shipping is free.\n\nQuestion: Hi?"
        )
        assert stack.embedder.calls[0][1] == {"input": ["Hi?"]}


@pytest.mark.parametrize("how", ["store_dead", "store_frozen", "embedder_dead", "embedder_slow", "embedder_broken"])
async def test_without_retrieval_the_answer_comes_soon_and_says_so(serve: Any, how: str) -> None:
    async with serve() as stack:
        await stack.chat(route="rag")  # connections are open before the fault
        if how == "store_dead":
            await stack.store.stop()
        elif how == "embedder_dead":
            await stack.embedder.stop()
        stack.store.frozen = how == "store_frozen"
        stack.embedder.delay_s = 30.0 if how == "embedder_slow" else 0.0
        stack.embedder.status = 500 if how == "embedder_broken" else 200
        reply = await stack.chat(route="rag")
        assert (reply.status, reply.content, reply.headers["x-degraded"]) == (200, "Hello there", "no_retrieval")
        assert reply.took_s < 2.0


async def test_the_breaker_of_the_store_opens_half_opens_and_closes_in_order_of_time(serve: Any) -> None:
    async with serve() as stack:
        await stack.store.stop()
        for _ in range(5):
            await stack.chat(route="rag")
        assert (
            'gateway_breaker_state{dependency="vector-store",replica="vector-store"} 2'
            in (await stack.get("/metrics")).text
        )
        await stack.store.start()

        for _ in range(200):  # traffic is what makes an open breaker ask again
            await stack.chat(route="rag")
            if stack.events("breaker_closed"):
                break
            await asyncio.sleep(0.02)
        assert "x-degraded" not in (await stack.chat(route="rag")).headers
        told = (await stack.get("/debug/events?after=0")).json["events"]
        mine = [event for event in told if event.get("dependency") == "vector-store"]
        assert [event["name"] for event in mine] == ["breaker_opened", "breaker_half_open", "breaker_closed"]
        assert [event["mono"] for event in mine] == sorted(event["mono"] for event in mine)
        assert (await stack.get(f"/debug/events?after={told[-1]['seq']}")).json == {
            "events": [],
            "last": told[-1]["seq"],
        }


async def test_the_store_gets_no_calls_while_its_breaker_is_open(serve: Any) -> None:
    async with serve(breaker={"consecutive_failures": 3, "open_s": 60}) as stack:
        await stack.store.stop()
        for _ in range(20):
            await stack.chat(route="rag")
        calls = stack.gateway.telemetry.metrics.upstream_calls.value("vector-store", "vector-store", "first")
        assert calls == 3


async def test_a_missing_breaker_calls_a_dead_store_every_time(serve: Any) -> None:
    async with serve(breaker={"kind": "none"}) as stack:
        await stack.store.stop()
        for _ in range(20):
            await stack.chat(route="rag")
        assert stack.gateway.telemetry.metrics.upstream_calls.value("vector-store", "vector-store", "first") == 20
        assert stack.events("breaker_opened") == []


async def test_retries_without_budget_multiply_and_with_one_do_not(serve: Any) -> None:
    naive = {"retry_budget": {"kind": "unlimited"}, "attempts": 4, "backoff": {"kind": "none"}}
    hardened = {"retry_budget": {"ratio": 0.1, "burst": 2}, "attempts": 4, "backoff": {"kind": "none"}}
    tries = {}
    for name, policies in (("naive", naive), ("hardened", hardened)):
        async with serve(**policies, breaker={"kind": "none"}) as stack:
            stack.a.script = stack.b.script = (503,)
            for _ in range(20):
                await stack.chat()
            tries[name] = len(stack.a.asked) + len(stack.b.asked)
    assert (tries["naive"], tries["hardened"] <= 20 + 2 + 2) == (80, True)


async def test_what_does_not_fit_is_shed_at_once_with_a_time_to_come_again(serve: Any, sse: Any) -> None:
    policies = {"limiter": {"initial": 1, "minimum": 1, "maximum": 1}, "queue": {"capacity": 1, "wait_s": 30.0}}
    async with serve(**policies) as stack:
        gate = (sse.frame("Hello"), 0.2, sse.frame(" you", "stop"), sse.DONE)
        stack.a.script = stack.b.script = gate
        first = asyncio.create_task(stack.chat())
        await stack.until(lambda: stack.gateway.admission.in_flight)
        second = asyncio.create_task(stack.chat())
        await stack.until(lambda: stack.gateway.admission.waiting)
        reply = await stack.chat()
        assert (reply.status, reply.headers["x-shed-reason"], reply.headers["Retry-After"]) == (503, "queue_full", "1")
        assert (reply.json["error"]["code"], reply.took_s < 1.0) == ("queue_full", True)
        assert [one.content for one in await asyncio.gather(first, second)] == ["Hello you"] * 2
        await stack.until(lambda: stack.events("shedding_stopped"))
        assert [event["name"] for event in stack.events()] == ["shedding_started", "shedding_stopped"]


async def test_a_queued_request_is_shed_when_its_deadline_comes(serve: Any, sse: Any) -> None:
    policies = {"limiter": {"initial": 1, "minimum": 1, "maximum": 1}, "queue": {"wait_s": 30.0}}
    async with serve(**policies) as stack:
        stack.a.script = stack.b.script = (sse.frame("Hello"), 0.25, sse.frame("", "stop"), sse.DONE)
        first = asyncio.create_task(stack.chat())
        await stack.until(lambda: stack.gateway.admission.in_flight)
        reply = await stack.chat(headers={"x-deadline-ms": "60"})
        assert (reply.status, reply.headers["x-shed-reason"]) == (503, "waited_too_long")
        await first


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


async def test_a_client_that_leaves_the_queue_is_never_sent_to_an_engine(serve: Any, sse: Any) -> None:
    policies = {"limiter": {"initial": 1, "minimum": 1, "maximum": 1}, "queue": {"wait_s": 30.0}}
    async with serve(**policies) as stack:
        stack.a.script = stack.b.script = (sse.frame("Hello"), 0.2, sse.frame("", "stop"), sse.DONE)
        first = asyncio.create_task(stack.chat())
        await stack.until(lambda: stack.gateway.admission.in_flight)
        second = asyncio.create_task(stack.chat())
        await stack.until(lambda: stack.gateway.admission.waiting)
        second.cancel()
        await stack.until(lambda: not stack.gateway.admission.waiting)
        await first
        assert len(stack.a.asked) + len(stack.b.asked) == 1
        await stack.until(lambda: not stack.gateway.admission.in_flight)


async def test_tools_are_forwarded_with_their_idempotency_key(serve: Any) -> None:
    async with serve() as stack:
        reply = await stack.post("/v1/tools/order_status", json={"order": 7}, headers={"idempotency-key": "k1"})
        path, body, headers = stack.tools.calls[0]
        assert (reply.json, path, body, headers["idempotency-key"]) == (
            {"result": {"order": 7}},
            "/tools/order_status",
            {"order": 7},
            "k1",
        )


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


async def test_while_draining_new_work_is_refused(serve: Any) -> None:
    async with serve() as stack:
        stack.gateway.draining = True
        reply = await stack.chat()
        assert (reply.status, reply.headers["x-shed-reason"]) == (503, "draining")
        assert (await stack.get("/health")).status == 503


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


async def test_a_deep_line_of_clients_all_get_exactly_one_answer(serve: Any) -> None:
    policies = {
        "limiter": {"initial": 4, "minimum": 4, "maximum": 4},
        "queue": {"capacity": 200, "wait_s": 30.0, "backed_up_wait_s": 30.0},
    }
    async with serve(**policies) as stack:
        replies = await asyncio.gather(*(stack.chat() for _ in range(80)))
        assert {reply.content for reply in replies} == {"Hello there"}
        await stack.until(lambda: not stack.gateway.admission.in_flight)
