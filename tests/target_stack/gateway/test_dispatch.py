"""When an engine fails: who is tried next, who leaves rotation, and what the client sees of it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from target_stack.gateway.engine_client import read_load
from target_stack.gateway.policies.outlier import EngineLoad

pytestmark = pytest.mark.system


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


async def test_two_tries_that_run_out_in_the_same_moment_are_both_answered_elsewhere(serve: Any) -> None:
    async with serve() as stack:
        stack.a.frozen = True
        stack.only_a()
        replies = await asyncio.gather(stack.chat(), stack.chat())
        assert [(reply.content, reply.headers["x-served-by"]) for reply in replies] == [("Hello there", "engine-b")] * 2
        assert [len(stack.a.asked), len(stack.events("replica_ejected"))] == [2, 1]


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


async def test_the_text_that_is_configured_is_the_text_that_users_read(serve: Any) -> None:
    async with serve(gateway={"canned_text": "Call 123."}) as stack:
        for engine in (stack.a, stack.b, stack.small):
            await engine.stop()
        assert (await stack.chat()).content == "Call 123."


async def test_a_fallback_that_is_not_wired_is_not_asked(serve: Any) -> None:
    async with serve(gateway={"fallback": None}) as stack:
        for engine in (stack.a, stack.b):
            await engine.stop()
        reply = await stack.chat()
        assert (reply.status, reply.headers["x-degraded"], stack.small.asked) == (200, "canned", [])


async def test_with_routing_to_everyone_a_dead_replica_is_called_until_its_breaker_opens(serve: Any) -> None:
    calls = {}
    for routing in ("admitted", "everyone"):
        async with serve(outlier={"routing": routing}) as stack:
            await stack.a.stop()
            await stack.until(lambda stack=stack: stack.events("replica_ejected"), within_s=2)
            for _ in range(10):
                stack.only_a()
                assert (await stack.chat()).content == "Hello there"
            calls[routing] = stack.gateway.telemetry.metrics.upstream_calls.value("engine", "engine-a", "first")
    assert (calls["admitted"], calls["everyone"] >= 3) == (0, True)


async def test_with_the_status_as_evidence_a_frozen_replica_stays_in_rotation(serve: Any) -> None:
    async with serve(outlier={"evidence": "status"}) as stack:
        stack.a.frozen = True
        for _ in range(4):
            stack.only_a()
            assert (await stack.chat()).content == "Hello there"
        assert stack.events("replica_ejected") == []


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


async def test_a_replica_that_asks_for_a_pause_is_left_alone_until_then(serve: Any) -> None:
    async with serve() as stack:
        stack.a.script, stack.a.reply_headers = (503,), {"Retry-After": "2"}
        for _ in range(5):
            stack.only_a()
            assert (await stack.chat()).headers["x-served-by"] == "engine-b"
        assert len(stack.a.asked) == 1
        await asyncio.sleep(2.0)
        stack.only_a()
        await stack.chat()
        assert len(stack.a.asked) == 2


async def test_a_pause_that_nobody_would_wait_for_is_not_believed_for_long(serve: Any) -> None:
    async with serve() as stack:
        stack.a.script, stack.a.reply_headers = (503,), {"Retry-After": "86400"}
        for wait_s, asked in ((0.0, 1), (4.0, 1), (2.0, 2)):
            await asyncio.sleep(wait_s)
            stack.only_a()
            await stack.chat()
            assert len(stack.a.asked) == asked


async def test_with_any_failure_retried_a_refusal_of_the_request_is_asked_again(serve: Any) -> None:
    asked = {}
    for classes in ("safe", "any"):
        async with serve(retry={"classes": classes}) as stack:
            stack.a.script = stack.b.script = (400,)
            reply = await stack.chat()
            assert (reply.status, reply.json["error"]["param"]) == (400, "input_tokens")
            asked[classes] = len(stack.a.asked) + len(stack.b.asked)
    assert asked == {"safe": 1, "any": 2}


async def test_resends_of_the_client_library_multiply_the_gateways_own(serve: Any) -> None:
    asked = {}
    for resends in (0, 2):
        async with serve(retry={"hop_resends": resends}, breaker={"kind": "none"}) as stack:
            stack.a.script = stack.b.script = (503,)
            await stack.chat()
            asked[resends] = len(stack.a.asked) + len(stack.b.asked)
    assert asked == {0: 2, 2: 6}


async def test_the_librarys_resends_are_counted_although_no_budget_sees_them(serve: Any) -> None:
    async with serve(retry={"hop_resends": 2}, retry_budget={"burst": 0}) as stack:
        stack.a.script = (503,)
        stack.only_a()
        await stack.chat()
        calls = stack.gateway.telemetry.metrics.upstream_calls
        assert [calls.value("engine", "engine-a", kind) for kind in ("first", "hop_resend", "retry")] == [1, 2, 0]


async def test_who_trusts_done_takes_a_dead_engines_stream_for_a_whole_answer(serve: Any, sse: Any) -> None:
    ends = {}
    for whole_by in ("finish_reason", "done"):
        async with serve(answer={"whole_by": whole_by}) as stack:
            stack.a.script = (sse.frame("Hello"), 0.01, sse.ENGINE_DIED, sse.DONE)
            stack.only_a()
            reply = await stack.chat()
            outcomes = stack.gateway.telemetry.metrics.requests
            ends[whole_by] = (reply.content, reply.frames[-1] == "[DONE]", outcomes.value("chat", "ok"))
    assert ends == {"finish_reason": ("Hello", False, 0), "done": ("Hello", True, 1)}


@pytest.mark.parametrize(("client_gone", "stopped"), [("stop", True), ("finish", False)])
async def test_an_answer_is_made_to_its_end_for_nobody_only_where_that_is_configured(
    serve: Any, sse: Any, client_gone: str, stopped: bool
) -> None:
    async with serve(answer={"client_gone": client_gone}, deadline={}) as stack:
        stack.a.script = (sse.frame("Hello"), *[0.3, sse.frame(" more")] * 20, sse.frame("", "stop"), sse.DONE)
        stack.only_a()
        body = {"model": "brownout-chat", "messages": [{"role": "user", "content": "Hi"}], "stream": True}
        reply = await stack.session.post(f"{stack.url}/v1/chat/completions", json=body)
        await reply.content.readany()
        reply.close()
        await asyncio.sleep(3.0)
        assert (stack.a.left == 1, stack.gateway.admission.in_flight == 0) == (stopped, stopped)
        await stack.until(lambda: not stack.gateway.admission.in_flight, within_s=10.0)


async def test_a_late_first_token_is_hedged_and_the_loser_is_cancelled(serve: Any, sse: Any) -> None:
    async with serve(hedge={"kind": "quantile", "fewest": 10}) as stack:
        for _ in range(10):
            await stack.chat()
        stack.a.script = (0.25, sse.frame("Late", "stop"), sse.DONE)
        stack.only_a()
        reply = await stack.chat()
        assert (reply.content, reply.headers["x-served-by"]) == ("Hello there", "engine-b")
        await stack.until(lambda: stack.a.left == 1)
        calls = stack.gateway.telemetry.metrics.upstream_calls
        assert calls.value("engine", "engine-b", "hedge") == 1
        assert stack.events() == []


async def test_a_hedge_is_paid_from_the_budget_of_retries(serve: Any, sse: Any) -> None:
    async with serve(hedge={"kind": "quantile", "fewest": 10}, retry_budget={"burst": 0}) as stack:
        for _ in range(10):
            await stack.chat()
        stack.a.script = (0.25, sse.frame("Late", "stop"), sse.DONE)
        stack.only_a()
        assert (await stack.chat()).content == "Late"


async def test_a_replica_that_refuses_is_not_the_first_choice_for_a_moment(serve: Any) -> None:
    async with serve() as stack:
        stack.a.script = (503,)
        stack.only_a()
        await stack.chat()
        for replica in stack.gateway.pools[0]:
            replica.in_flight = 0 if replica.name == "engine-a" else 10
        for _ in range(5):
            assert (await stack.chat()).headers["x-served-by"] == "engine-b"
        assert len(stack.a.asked) == 1
        await asyncio.sleep(0.3)
        stack.only_a()
        await stack.chat()
        assert len(stack.a.asked) == 2


def test_the_gauges_of_an_engine_are_summed_over_their_labels() -> None:
    page = 'vllm:num_requests_running{engine="0"} 2.0\nvllm:num_requests_running{engine="1"} 1.0\nx 9\n'
    assert read_load(page) == EngineLoad(running=3.0, waiting=0.0)
