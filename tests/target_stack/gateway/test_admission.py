"""The door: who waits, who is refused at once, and who pays for being sent again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from target_stack.gateway.policies.retry_budget import RESEND_HEADER

pytestmark = pytest.mark.system


@pytest.mark.parametrize("count", [None, "0", "00", "-1", "1.5", "soon", "\u0661", ""])
async def test_a_first_try_is_never_refused_for_an_empty_budget(serve: Any, count: str | None) -> None:
    async with serve(retry_budget={"ratio": 0.1, "burst": 0}) as stack:
        for _ in range(5):
            reply = await stack.chat(headers={} if count is None else {RESEND_HEADER: count})
            assert (reply.status, reply.content) == (200, "Hello there")
        assert stack.gateway.telemetry.metrics.shed.value("retry_budget") == 0


@pytest.mark.parametrize(
    ("path", "body"),
    [("chat/completions", {}), ("rag", {}), ("embeddings", {"input": "a"}), ("tools/order_status", {})],
)
async def test_a_resend_beyond_the_budget_is_refused_on_every_route(
    serve: Any, path: str, body: dict[str, Any]
) -> None:
    async with serve(retry_budget={"ratio": 0.1, "burst": 2}) as stack:
        replies = [await stack.chat(route=path, headers={RESEND_HEADER: "1"}, **body) for _ in range(3)]
        assert [reply.status for reply in replies] == [200, 200, 503]
        refused = replies[-1]
        assert (refused.headers["x-shed-reason"], refused.headers["Retry-After"]) == ("retry_budget", "1")
        assert refused.json["error"]["code"] == "retry_budget"
        assert 'gateway_shed_total{reason="retry_budget"} 1' in (await stack.get("/metrics")).text


@pytest.mark.parametrize("path", ["chat/completions", "embeddings", "tools/order_status"])
async def test_first_tries_on_every_route_earn_resends_and_resends_earn_none(serve: Any, path: str) -> None:
    async with serve(retry_budget={"ratio": 0.5, "burst": 1}) as stack:
        sent = [1, 0, 1, 0, 1, 1]  # a resend costs 1, a first try earns a half
        replies = [await stack.chat(route=path, input="a", headers={RESEND_HEADER: str(count)}) for count in sent]
        assert [reply.status for reply in replies] == [200, 200, 503, 200, 200, 503]


async def test_clients_resends_and_the_gateways_retries_are_paid_from_one_budget(serve: Any) -> None:
    async with serve(retry_budget={"ratio": 0.0, "burst": 2}, backoff={"kind": "none"}) as stack:
        stack.a.script = stack.b.script = (503,)
        assert (await stack.chat()).headers["x-degraded"] == "fallback_model"
        assert len(stack.a.asked) + len(stack.b.asked) == 2  # one retry of ours: one token is left
        assert (await stack.chat(headers={RESEND_HEADER: "1"})).headers["x-degraded"] == "fallback_model"
        assert len(stack.a.asked) + len(stack.b.asked) == 3  # the client's resend took it: no retry of ours
        assert (await stack.chat(headers={RESEND_HEADER: "2"})).headers["x-shed-reason"] == "retry_budget"
        assert len(stack.a.asked) + len(stack.b.asked) == 3


async def test_a_missing_budget_admits_every_resend(serve: Any) -> None:
    async with serve(retry_budget={"kind": "unlimited"}) as stack:
        replies = [await stack.chat(headers={RESEND_HEADER: str(count)}) for count in range(1, 31)]
        assert {reply.status for reply in replies} == {200}


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


@pytest.mark.parametrize("admission_at", ["arrival", "first_token"])
async def test_where_admission_stands_decides_how_much_is_done_in_vain(serve: Any, admission_at: str) -> None:
    policies = {
        "limiter": {"initial": 1, "minimum": 1, "maximum": 1},
        "queue": {"capacity": 0},
        "admission_at": admission_at,
    }
    async with serve(**policies) as stack:
        await stack.until(stack.gateway.able)
        async with stack.gateway.admission.slot("interactive", 1e9):
            reply = await stack.chat(route="rag")
            assert (reply.status, reply.headers["x-shed-reason"]) == (503, "queue_full")
            work = (len(stack.embedder.calls), len(stack.a.asked) + len(stack.b.asked))
            assert work == {"arrival": (0, 0), "first_token": (1, 1)}[admission_at]


async def test_batch_work_never_holds_the_slots_that_are_kept_for_users(serve: Any, sse: Any) -> None:
    policies = {"limiter": {"initial": 4, "minimum": 4, "maximum": 4}, "slots": {"batch_most": 0.75}}
    async with serve(**policies) as stack:
        stack.a.script = stack.b.script = (sse.frame("Hello"), 0.2, sse.frame("", "stop"), sse.DONE)
        batch = [asyncio.create_task(stack.chat(headers={"x-priority": "batch"})) for _ in range(8)]
        await stack.until(lambda: stack.gateway.admission.waiting)
        assert stack.gateway.admission.in_flight == 3
        user = asyncio.create_task(stack.chat())
        await stack.until(lambda: stack.gateway.admission.in_flight == 4)
        assert {reply.content for reply in await asyncio.gather(user, *batch)} == {"Hello"}


async def test_a_deep_line_of_clients_all_get_exactly_one_answer(serve: Any) -> None:
    policies = {
        "limiter": {"initial": 4, "minimum": 4, "maximum": 4},
        "queue": {"capacity": 200, "wait_s": 30.0, "backed_up_wait_s": 30.0},
    }
    async with serve(**policies) as stack:
        replies = await asyncio.gather(*(stack.chat() for _ in range(80)))
        assert {reply.content for reply in replies} == {"Hello there"}
        await stack.until(lambda: not stack.gateway.admission.in_flight)
