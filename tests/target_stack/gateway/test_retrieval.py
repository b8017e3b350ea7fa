"""Answers over documents, and what is left of them when the store or the embedder fails."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

pytestmark = pytest.mark.system


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


async def test_the_embedder_is_told_its_own_share_of_the_time(serve: Any) -> None:
    async with serve(deadline={"embedder_s": 0.3, "retrieval_s": 0.4}) as stack:
        await stack.chat(route="rag")
        await stack.chat(route="rag", headers={"x-cache": "prefer"})
        told = [int(headers["x-deadline-ms"]) for _, _, headers in stack.embedder.calls]
        assert told
        assert max(told) <= 300


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


async def test_clients_that_leave_before_the_store_times_out_keep_its_breaker_closed(serve: Any) -> None:
    opened = {}
    for limit_s in (0.2, 8.0):
        limits = {"retrieval_s": limit_s, "vector_store_s": limit_s, "embedder_s": 0.2, "connect_s": 5.0}
        async with serve(deadline={**limits, "first_token_s": 5.0, "total_s": 20.0}) as stack:
            await stack.chat(route="rag")
            stack.store.frozen = True
            for _ in range(6):
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(3.0):
                        await stack.chat(route="rag")
            opened[limit_s] = len(stack.events("breaker_opened"))
    assert (opened[0.2] >= 1, opened[8.0]) == (True, 0)


async def test_a_missing_breaker_calls_a_dead_store_every_time(serve: Any) -> None:
    async with serve(breaker={"kind": "none"}) as stack:
        await stack.store.stop()
        for _ in range(20):
            await stack.chat(route="rag")
        assert stack.gateway.telemetry.metrics.upstream_calls.value("vector-store", "vector-store", "first") == 20
        assert stack.events("breaker_opened") == []
