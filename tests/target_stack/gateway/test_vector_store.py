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
