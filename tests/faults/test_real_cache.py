"""A flush of a real Valkey under a client that goes on writing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from chaos.adapters.host import real_host
from chaos.faults.cache_flush import CacheFlush
from chaos.inventory import Target
from chaos.testing.conformance import check_fault
from tests.faults.servers import valkey

pytestmark = pytest.mark.system

ENTRIES = {f"answer:{number}": f"text {number}" for number in range(1200)}


@pytest.fixture
def client(tmp_path: Path) -> Iterator[redis.Redis]:
    """Of a full cache."""
    with valkey(tmp_path) as server, redis.Redis(port=server.port, decode_responses=True) as client:
        client.mset(ENTRIES)
        yield client


def target(client: redis.Redis) -> Target:
    port = client.connection_pool.connection_kwargs["port"]
    return Target("cache", "cache", None, (), f"127.0.0.1:{port}", wire="redis")


def held(client: redis.Redis) -> dict[str, str]:
    keys = sorted(client.keys("*"))
    return dict(zip(keys, client.mget(keys), strict=True)) if keys else {}


def test_a_flush_keeps_its_contract_on_a_real_server_and_loses_nothing(client: redis.Redis) -> None:
    async def main() -> None:
        async with real_host() as host:
            await check_fault(CacheFlush(), (target(client),), host)

    asyncio.run(main())
    assert held(client) == ENTRIES
    assert set(client.info("keyspace")) == {"db0"}


def test_the_lifetimes_go_on_while_the_entries_are_away_and_new_ones_stay(client: redis.Redis) -> None:
    async def main() -> None:
        async with real_host() as host:
            cache, flush = (target(client),), CacheFlush()
            client.set("short", "x", px=50)
            client.expire("answer:1", 1000)
            undo = await flush.prepare(cache, host)
            await flush.inject(cache, undo, host)
            assert held(client) == {}
            client.set("answer:2", "new")
            await host.clock.sleep_until(host.clock.now() + 0.1)
            assert (await flush.confirm(cache, undo, host)).seen
            await flush.revert(undo, host)
            assert (await flush.confirm_gone(cache, undo, host)).seen

    asyncio.run(main())
    assert held(client) == {**ENTRIES, "answer:2": "new"}
    assert 990 < client.ttl("answer:1") <= 1000
