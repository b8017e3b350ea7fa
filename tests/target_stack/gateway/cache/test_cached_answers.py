"""Kept and shared answers as clients see them, on real sockets between scripted upstreams."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytestmark = pytest.mark.system

PREFER = {"x-cache": "prefer"}


def question(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def engine_calls(stack: Any) -> int:
    return len(stack.a.asked) + len(stack.b.asked)


def lose_all_models(stack: Any) -> None:
    for engine in (stack.a, stack.b, stack.small):
        engine.script = (500,)


@pytest.mark.parametrize("first", [True, False], ids=["from a stream", "from a reply"])
@pytest.mark.parametrize("second", [True, False], ids=["to a stream", "to a reply"])
async def test_the_same_question_is_answered_from_the_cache(cached: Any, first: bool, second: bool) -> None:
    async with cached() as (stack, _):
        made = await stack.chat(headers=PREFER, stream=first)
        kept = await stack.chat(headers=PREFER, stream=second)
        assert (made.headers["x-cache"], kept.headers["x-cache"]) == ("miss", "hit")
        assert (kept.headers["x-served-by"], kept.headers["age"]) == ("cache", "0")
        assert "x-degraded" not in kept.headers
        text = kept.content if second else kept.json["choices"][0]["message"]["content"]
        assert text == "Hello there"
        assert engine_calls(stack) == 1


async def test_a_kept_stream_is_whole_and_counts_tokens_only_when_asked(cached: Any, sse: Any) -> None:
    async with cached() as (stack, _):
        counted = sse.data({"id": "chatcmpl-1", "choices": [], "usage": {"total_tokens": 5}})
        stack.a.script = stack.b.script = (sse.frame("Hello", "stop"), counted, sse.DONE)
        for _ in range(2):
            plain = await stack.chat(headers=PREFER)
            assert [frame["choices"] == [] for frame in plain.frames[:-1]].count(True) == 0
            assert plain.frames[-2]["choices"][0]["finish_reason"] == "stop"
            assert plain.frames[-1] == "[DONE]"
        asked = await stack.chat(headers=PREFER, stream_options={"include_usage": True})
        assert asked.frames[-2]["usage"] == {"total_tokens": 5}
        assert engine_calls(stack) == 1


async def test_without_being_asked_for_the_cache_is_not_used(cached: Any) -> None:
    async with cached() as (stack, store):
        for headers in ({}, {"x-cache": "off"}):
            reply = await stack.chat(headers=headers)
            assert "x-cache" not in reply.headers
        assert (engine_calls(stack), store.data) == (2, {})
        assert 'gateway_cache_requests_total{result="off"} 2' in (await stack.get("/metrics")).text


async def test_an_unknown_wish_is_refused(cached: Any) -> None:
    async with cached() as (stack, _):
        reply = await stack.chat(headers={"x-cache": "always"})
        assert (reply.status, reply.json["error"]["param"]) == (400, "x-cache")


async def test_a_question_that_means_the_same_is_answered_alike_and_one_that_does_not_is_not(cached: Any) -> None:
    async with cached() as (stack, _):  # its embedder finds all texts alike
        await stack.chat(headers=PREFER, **question("How long is the warranty?"))
        near = await stack.chat(headers=PREFER, **question("The warranty is how long?"))
        other = await stack.chat(headers=PREFER, **question("Where is the warranty?"))
        assert (near.headers["x-cache"], other.headers["x-cache"]) == ("semantic", "miss")


@pytest.mark.parametrize(
    ("mine", "yours"),
    [
        ({"user": "anna"}, {"user": "ben"}),
        ({"user": "anna"}, {}),
        ({"headers": {**PREFER, "authorization": "Bearer a"}}, {"headers": {**PREFER, "authorization": "Bearer b"}}),
        ({"headers": {**PREFER, "x-tenant": "a"}}, {"headers": {**PREFER, "x-tenant": "b"}}),
        ({"max_tokens": 5}, {"max_tokens": 50}),
        ({"route": "rag"}, {}),
    ],
    ids=str,
)
async def test_nothing_crosses_from_one_user_tenant_or_shape_of_request_to_another(
    cached: Any, mine: dict[str, Any], yours: dict[str, Any]
) -> None:
    async with cached() as (stack, _):
        assert (await stack.chat(**{"headers": PREFER, **mine})).headers["x-cache"] == "miss"
        assert (await stack.chat(**{"headers": PREFER, **yours})).headers["x-cache"] == "miss"
        assert (await stack.chat(**{"headers": PREFER, **mine})).headers["x-cache"] == "hit"


@pytest.mark.parametrize("how", ["cut short", "broken", "empty", "fallback_model", "canned", "no_retrieval"])
async def test_only_a_whole_and_undegraded_answer_is_kept(cached: Any, sse: Any, how: str) -> None:
    async with cached() as (stack, store):
        script = {
            "cut short": (sse.frame("Hello", "length"), sse.DONE),
            "broken": (sse.frame("Hello"), sse.ENGINE_DIED, sse.DONE),
            "empty": (sse.frame("", "stop"), sse.DONE),
        }
        stack.a.script = stack.b.script = script.get(how, (500,) if how != "no_retrieval" else stack.a.script)
        stack.small.script = (500,) if how == "canned" else stack.small.script
        if how == "no_retrieval":
            await stack.store.stop()
        await stack.chat(route="rag" if how == "no_retrieval" else "chat/completions", headers=PREFER)
        assert store.data == {}


async def test_a_kept_answer_over_documents_still_names_them(cached: Any) -> None:
    async with cached() as (stack, _):
        for _ in range(2):
            reply = await stack.chat(route="rag", headers=PREFER)
            assert reply.headers["x-documents"] == "doc-17,doc-3"
        assert reply.headers["x-cache"] == "hit"
        assert len(stack.embedder.calls) == 1  # the look's vector served retrieval too


async def test_an_answer_is_kept_for_its_lifetime_and_no_longer(cached: Any) -> None:
    async with cached(cache={"ttl_s": 10.0, "ttl_jitter": 0.0}) as (stack, _):
        await stack.chat(headers=PREFER)
        await asyncio.sleep(9.0)
        assert (await stack.chat(headers=PREFER)).headers["age"] == "9"
        await asyncio.sleep(1.5)
        assert (await stack.chat(headers=PREFER)).headers["x-cache"] == "miss"


async def test_a_frozen_cache_costs_its_time_limit_a_few_times_and_then_nothing(cached: Any) -> None:
    async with cached(cache={"call_s": 0.05}, breaker={"consecutive_failures": 3, "open_s": 60}) as (stack, store):
        await stack.chat(headers=PREFER)
        store.frozen = True
        took = []
        for number in range(6):
            reply = await stack.chat(headers=PREFER, **question(f"Question {number}"))
            assert (reply.status, reply.content, reply.headers["x-cache"]) == (200, "Hello there", "error")
            took.append(reply.took_s)
        assert max(took[:3]) < 0.15
        assert max(took[3:]) < 0.03
        assert [event["dependency"] for event in stack.events("breaker_opened")] == ["cache"]


async def test_a_dead_cache_is_gone_around_and_found_again(cached: Any) -> None:
    async with cached() as (stack, store):
        await stack.chat(headers=PREFER)
        await store.stop()
        assert (await stack.chat(headers=PREFER)).headers["x-cache"] == "error"
        await store.start()
        assert (await stack.chat(headers=PREFER)).headers["x-cache"] == "hit"


async def test_a_kept_answer_stands_in_when_no_model_answers_and_says_how_old_it_is(cached: Any) -> None:
    async with cached() as (stack, _):
        await stack.chat(headers=PREFER)
        await asyncio.sleep(2.0)
        lose_all_models(stack)
        reply = await stack.chat()  # did not ask for the cache, but it is better than the fixed text
        assert (reply.status, reply.content) == (200, "Hello there")
        assert (reply.headers["x-degraded"], reply.headers["age"]) == ("semantic_cache", "2")
        assert "contact our support" in (await stack.chat(**question("What else?"))).content
        assert 'gateway_fallback_total{reason="semantic_cache"} 1' in (await stack.get("/metrics")).text


async def test_a_new_gateway_finds_what_an_earlier_one_kept_by_its_meaning_too(cached: Any) -> None:
    async with cached() as (stack, store):
        await stack.chat(headers=PREFER, **question("How long is the warranty?"))
    async with cached(store) as (stack, _):
        await stack.until(lambda: "MGET" in store.asked)
        near = await stack.chat(headers=PREFER, **question("The warranty is how long?"))
        assert near.headers["x-cache"] == "semantic"


@pytest.mark.parametrize("asks", [{"headers": PREFER}, {"temperature": 0}], ids=["cache", "nothing left to chance"])
@pytest.mark.parametrize("stream", [True, False])
async def test_who_asks_the_same_at_once_shares_one_answer(cached: Any, sse: Any, asks: Any, stream: bool) -> None:
    async with cached() as (stack, _):
        stack.a.script = stack.b.script = (0.1, sse.frame("Hello"), 0.1, sse.frame(" there", "stop"), sse.DONE)
        replies = await asyncio.gather(*(stack.chat(stream=stream, **asks) for _ in range(10)))
        texts = {r.content if stream else r.json["choices"][0]["message"]["content"] for r in replies}
        assert (texts, engine_calls(stack)) == ({"Hello there"}, 1)
        assert sorted(r.headers.get("x-cache", "none") for r in replies)[1:] == ["shared"] * 9
        assert len({r.headers["x-trace-id"] for r in replies}) == 10
        assert "gateway_single_flight_followers_total 9" in (await stack.get("/metrics")).text


async def test_a_stampede_is_what_comes_without_single_flight(cached: Any, sse: Any) -> None:
    async with cached(single_flight={"kind": "none"}) as (stack, _):
        stack.a.script = stack.b.script = (0.1, sse.frame("Hello", "stop"), sse.DONE)
        await asyncio.gather(*(stack.chat(headers=PREFER) for _ in range(10)))
        assert engine_calls(stack) == 10
        assert (await stack.chat(headers=PREFER)).headers["x-cache"] == "hit"


async def test_a_leader_that_leaves_takes_nobody_with_it(cached: Any, sse: Any) -> None:
    async with cached() as (stack, _):
        stack.a.script = stack.b.script = (0.1, sse.frame("Hello"), 0.2, sse.frame(" there", "stop"), sse.DONE)
        leader = asyncio.create_task(stack.chat(headers=PREFER))
        await stack.until(lambda: engine_calls(stack))
        follower = asyncio.create_task(stack.chat(headers=PREFER))
        await asyncio.sleep(0.05)
        leader.cancel()
        assert ((await follower).content, engine_calls(stack)) == ("Hello there", 1)


async def test_a_leaders_short_deadline_is_not_its_followers(cached: Any, sse: Any) -> None:
    async with cached() as (stack, _):
        stack.a.script = stack.b.script = (0.2, sse.frame("Hello there", "stop"), sse.DONE)
        hasty = {**PREFER, "x-deadline-ms": "100"}
        leader, follower = await asyncio.gather(stack.chat(headers=hasty), stack.chat(headers=PREFER))
        assert leader.headers["x-degraded"] == "canned"
        assert (follower.content, engine_calls(stack)) == ("Hello there", 1)


async def test_the_last_listener_that_leaves_stops_the_engine(cached: Any, sse: Any) -> None:
    async with cached() as (stack, _):
        stack.a.script = stack.b.script = (30.0,)
        asking = [asyncio.create_task(stack.chat(headers=PREFER)) for _ in range(3)]
        await stack.until(lambda: engine_calls(stack))
        for one in asking:
            one.cancel()
        await stack.until(lambda: stack.a.left + stack.b.left, within_s=1.0)
        await stack.until(lambda: not stack.gateway.admission.in_flight, within_s=1.0)
        assert len(stack.gateway.flights) == 0


async def test_an_answer_that_breaks_breaks_for_every_listener_and_the_next_one_asks_anew(
    cached: Any, sse: Any
) -> None:
    async with cached() as (stack, _):
        stack.a.script = stack.b.script = (sse.frame("Hello"), 0.1, sse.ENGINE_DIED, sse.DONE)
        replies = await asyncio.gather(*(stack.chat(headers=PREFER) for _ in range(3)))
        assert [("error" in r.frames[-1], r.content) for r in replies] == [(True, "Hello")] * 3
        stack.a.script = stack.b.script = (sse.frame("Hello there", "stop"), sse.DONE)
        assert (await stack.chat(headers=PREFER)).content == "Hello there"


async def test_a_refusal_reaches_every_listener_with_a_trace_of_its_own(cached: Any) -> None:
    async with cached() as (stack, _):
        stack.a.script = stack.b.script = (0.1, 400)
        replies = await asyncio.gather(*(stack.chat(headers=PREFER) for _ in range(3)))
        assert [r.status for r in replies] == [400] * 3
        assert len({r.headers["x-trace-id"] for r in replies}) == 3


async def test_batch_work_and_people_do_not_wait_in_one_line(cached: Any, sse: Any) -> None:
    async with cached() as (stack, _):
        stack.a.script = stack.b.script = (0.1, sse.frame("Hello", "stop"), sse.DONE)
        batch = {**PREFER, "x-priority": "batch"}
        await asyncio.gather(stack.chat(headers=batch), stack.chat(headers=PREFER))
        assert engine_calls(stack) == 2
