"""The client against a real Valkey."""

from __future__ import annotations

import asyncio
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from target_stack.cache.part import Valkey
from target_stack.cache.server import ValkeyServer, find_installation
from target_stack.gateway.cache.client import CacheClient
from target_stack.gateway.dependency import CallFailed

pytestmark = pytest.mark.system


@asynccontextmanager
async def valkey(folder: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, CacheClient]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = ValkeyServer(find_installation(), folder)
    part = Valkey("cache", server, None, folder / "log")
    process = await asyncio.create_subprocess_exec(*server.serve(port), stdout=asyncio.subprocess.DEVNULL)
    client = CacheClient(("127.0.0.1", port), 4)
    try:
        for _ in range(1000):
            if await part.serves(f"127.0.0.1:{port}"):
                break
            await asyncio.sleep(0.01)
        yield process, client
    finally:
        await client.close()
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_values_keep_their_lifetime_and_are_found_by_pattern(real_time: None, tmp_path: Path) -> None:
    async with valkey(tmp_path) as (_, client):
        await client.put("answer:a", b"one", 60.0)
        await client.put("other", b"two", 60.0)
        value, left_s = await client.get("answer:a")
        assert value == b"one"
        assert 59.0 < left_s <= 60.0
        assert await client.get("answer:b") is None
        assert [key async for key in client.keys("answer:*")] == ["answer:a"]
        assert await client.values(["answer:a", "answer:b"]) == [b"one", None]


async def test_a_call_that_is_cut_off_never_leaves_its_reply_to_the_next_one(real_time: None, tmp_path: Path) -> None:
    async with valkey(tmp_path) as (process, client):
        for name in ("mine", "yours"):
            await client.put(name, name.encode(), 60.0)
        for _ in range(8):  # twice as often as there may be connections: none is lost either
            process.send_signal(signal.SIGSTOP)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.02):
                    await client.get("mine")
            process.send_signal(signal.SIGCONT)
            assert (await client.get("yours"))[0] == b"yours"


async def test_a_dead_server_fails_at_once(real_time: None, tmp_path: Path) -> None:
    async with valkey(tmp_path) as (process, client):
        await client.put("a", b"1", 60.0)
        process.kill()
        await process.wait()
        async with asyncio.timeout(1.0):
            for call in (client.get("a"), client.put("a", b"1", 1.0), client.values(["a"])):
                with pytest.raises(CallFailed):
                    await call
            with pytest.raises(CallFailed):
                [key async for key in client.keys("*")]
