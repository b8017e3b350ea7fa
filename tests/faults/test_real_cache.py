"""What takes the entries of a real Valkey away, under a client that goes on writing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from chaos.adapters.host import real_host
from chaos.faults.cache_flush import CacheFlush
from chaos.faults.cache_stampede import CacheStampede
from chaos.faults.fault import Fault
from chaos.inventory import Target
from chaos.testing.conformance import check_fault, check_negative_control
from tests.faults.servers import valkey

pytestmark = pytest.mark.system

FAULTS: tuple[Fault, ...] = (CacheFlush(), CacheStampede())
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


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.kind)
def test_a_fault_keeps_its_contract_on_a_real_server_and_loses_nothing(client: redis.Redis, fault: Fault) -> None:
    async def main() -> None:
        async with real_host() as host:
            await check_negative_control(fault, (target(client),), host, within_s=0.1)
            await check_fault(fault, (target(client),), host)

    asyncio.run(main())
    assert held(client) == ENTRIES
    assert set(client.info("keyspace")) == {"db0"}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.kind)
def test_the_lifetimes_go_on_while_the_entries_are_away_and_new_ones_stay(client: redis.Redis, fault: Fault) -> None:
    async def main() -> None:
        async with real_host() as host:
            cache = (target(client),)
            client.set("short", "x", px=50)
            client.expire("answer:1", 1000)
            undo = await fault.prepare(cache, host)
            await fault.inject(cache, undo, host)
            assert held(client) == {}
            client.set("answer:2", "new")
            await host.clock.sleep_until(host.clock.now() + 0.1)
            assert (await fault.confirm(cache, undo, host)).seen
            await fault.revert(undo, host)
            assert (await fault.confirm_gone(cache, undo, host)).seen

    asyncio.run(main())
    assert held(client) == {**ENTRIES, "answer:2": "new"}
    assert 990 < client.ttl("answer:1") <= 1000
