"""Searches reuse their connection, find a restarted server again, and never wait for a frozen one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from target_stack.gateway.dependency import CallFailed
from target_stack.gateway.vector_store import VectorStoreClient

pytestmark = pytest.mark.system


async def test_a_connection_is_kept_and_used_again(serve: Any) -> None:
    async with serve() as stack:
        client = VectorStoreClient(("127.0.0.1", stack.store.port), connect_s=1.0)
        found = [await client.search([0.5], 3) for _ in range(5)]
        assert found == [stack.store.rows] * 5
        assert stack.store.connections == 1
        await client.close()


async def test_after_a_restart_one_search_fails_and_the_next_one_connects_again(serve: Any) -> None:
    async with serve() as stack:
        client = VectorStoreClient(("127.0.0.1", stack.store.port), connect_s=1.0)
        await asyncio.gather(*(client.search([0.5], 3) for _ in range(4)))
        await stack.store.stop()
        await stack.store.start()
        with pytest.raises(CallFailed, match="query_failed"):
            await client.search([0.5], 3)
        assert await client.search([0.5], 3) == stack.store.rows
        await client.close()


async def test_a_statement_that_fails_costs_no_connection(serve: Any) -> None:
    async with serve() as stack:
        client = VectorStoreClient(("127.0.0.1", stack.store.port), connect_s=1.0)
        await client.search([0.5], 3)
        stack.store.bad_disk = True
        for _ in range(3):
            with pytest.raises(CallFailed, match="query_failed"):
                await client.search([0.5], 3)
        stack.store.bad_disk = False
        assert await client.search([0.5], 3) == stack.store.rows
        assert stack.store.connections == 1
        await client.close()


async def test_a_search_that_is_given_up_leaves_no_task_behind_though_the_server_is_frozen(serve: Any) -> None:
    async with serve() as stack:
        client = VectorStoreClient(("127.0.0.1", stack.store.port), connect_s=1.0)
        stack.store.frozen = True
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await client.search([0.5], 3)
        await stack.until(lambda: not client._running, within_s=2.0)
        stack.store.frozen = False
        assert await client.search([0.5], 3) == stack.store.rows
        await client.close()


async def test_nobody_there_is_one_word(serve: Any) -> None:
    async with serve() as stack:
        await stack.store.stop()
        with pytest.raises(CallFailed, match="connect_failed"):
            await VectorStoreClient(("127.0.0.1", stack.store.port), connect_s=1.0).search([0.5], 3)


async def test_the_server_learns_its_limit_with_the_connection_and_again_only_when_it_changes(serve: Any) -> None:
    async with serve() as stack:
        client = VectorStoreClient(("127.0.0.1", stack.store.port), connect_s=1.0, query_s=0.2)
        for within_s, told in ((5.0, 0), (0.2, 0), (0.05, 1), (0.05, 1), (5.0, 2), (0.19, 2)):
            await client.search([0.5], 3, within_s=within_s)
            assert told == sum("statement_timeout" in query for query in stack.store.queries)
        assert "-c statement_timeout=250 " in stack.store.startups[0]
        await client.close()


async def test_what_is_left_of_the_deadline_shrinks_from_hop_to_hop(serve: Any) -> None:
    async with serve() as stack:
        stack.embedder.delay_s = 0.05
        reply = await stack.chat(route="rag", headers={"x-deadline-ms": "190"})
        assert reply.content == "Hello there"
        engine = next(one for one in (stack.a, stack.b) if one.headers)
        embedder_ms, engine_ms = (
            int(sent["x-deadline-ms"]) for sent in (stack.embedder.calls[-1][2], engine.headers[0])
        )
        store_ms = int(stack.store.startups[-1].partition("statement_timeout=")[2].partition(" ")[0]) - 50
        assert 190 >= embedder_ms > 140 >= engine_ms
        assert store_ms <= 200
