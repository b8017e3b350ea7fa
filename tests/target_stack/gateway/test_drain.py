"""Leaving: the health check first, then nobody new, then the truth to who is cut."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from target_stack import supervisor
from target_stack.gateway.drain import LAST_WORDS_S
from target_stack.gateway.policies.settings import DrainSettings

pytestmark = pytest.mark.system
RULES = {"notice_s": 0.5, "finish_s": 1.0}


async def test_health_says_so_before_anybody_is_refused(serve: Any) -> None:
    async with serve(drain=RULES) as stack:
        await stack.until(stack.gateway.able)
        leaving = asyncio.create_task(stack.gateway.drain.run())
        await asyncio.sleep(0.1)
        assert ((await stack.get("/health")).status, (await stack.chat()).status) == (503, 200)
        await leaving
        for path, body in (("chat/completions", {}), ("embeddings", {"input": "a"}), ("tools/order_status", {})):
            reply = await stack.chat(route=path, **body)
            assert (reply.status, reply.headers["x-shed-reason"], reply.headers["Retry-After"]) == (
                503,
                "draining",
                "1",
            )
            assert reply.headers["Connection"] == "close"


async def test_what_was_started_is_finished_and_the_line_is_sent_away(serve: Any, sse: Any) -> None:
    policies = {"limiter": {"initial": 1, "minimum": 1, "maximum": 1}, "queue": {"wait_s": 30.0}}
    async with serve(drain={"notice_s": 0.0, "finish_s": 2.0}, **policies) as stack:
        stack.a.script = stack.b.script = (sse.frame("Hello"), 0.2, sse.frame(" you", "stop"), sse.DONE)
        started = asyncio.create_task(stack.chat())
        await stack.until(lambda: stack.gateway.admission.in_flight)
        waiting = asyncio.create_task(stack.chat())
        await stack.until(lambda: stack.gateway.admission.waiting)
        await stack.gateway.drain.run()
        assert ((await started).content, (await waiting).headers["x-shed-reason"]) == ("Hello you", "draining")
        assert stack.events("drain_finished")[0]["cut"] == 0


async def test_a_stream_that_is_cut_ends_with_an_error_frame_and_no_done(serve: Any, sse: Any) -> None:
    async with serve(drain=RULES, deadline={"total_s": 60.0, "per_try_s": 60.0, "inter_token_s": 30.0}) as stack:
        stack.a.script = stack.b.script = (sse.frame("Hello"), 20.0, sse.frame(" you", "stop"), sse.DONE)
        cut = asyncio.create_task(stack.chat())
        await stack.until(lambda: stack.gateway.admission.in_flight)
        await asyncio.sleep(0.05)
        await stack.gateway.drain.run()
        reply = await cut
        assert (reply.status, reply.content) == (200, "Hello")
        assert reply.frames[-1]["error"]["code"] == "draining"
        await stack.until(lambda: stack.a.left + stack.b.left)  # and the engine is not left at work
        assert stack.events("drain_finished")[0]["cut"] == 1


async def test_who_has_seen_nothing_yet_gets_a_503_to_try_elsewhere(serve: Any, sse: Any) -> None:
    limits = {"total_s": 60.0, "per_try_s": 60.0, "first_token_s": 30.0}
    async with serve(drain=RULES, deadline=limits, breaker={"permit_lease_s": 60.0}) as stack:
        stack.a.script = stack.b.script = (20.0, sse.frame("Hello", "stop"), sse.DONE)
        cut = asyncio.create_task(stack.chat())
        await stack.until(lambda: stack.gateway.admission.in_flight)
        await stack.gateway.drain.run()
        reply = await cut
        assert (reply.status, reply.json["error"]["code"], reply.headers["Retry-After"]) == (503, "draining", "1")


async def test_without_a_drain_nothing_is_waited_for(serve: Any) -> None:
    async with serve(drain={"kind": "none"}) as stack:
        await stack.gateway.drain.run()
        assert not stack.events("drain_started")


def test_the_supervisor_waits_longer_than_the_drain_takes() -> None:
    rules = DrainSettings()
    assert rules.notice_s + rules.finish_s + LAST_WORDS_S < supervisor.DRAIN_TIMEOUT_S
