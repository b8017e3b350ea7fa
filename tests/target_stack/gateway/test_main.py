"""The gateway as a process: SIGTERM finishes what is in flight and then ends it."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
import time
from typing import Any

import aiohttp
import pytest

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("real_time")]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


async def test_sigterm_finishes_the_stream_in_flight_and_exits_zero(serve: Any, sse: Any) -> None:
    async with serve() as stack:  # only its upstreams are used here
        stack.a.script = (sse.frame("Hello"), 0.3, sse.frame(" you", "stop"), sse.DONE)
        url = f"http://127.0.0.1:{free_port()}"
        config = {
            "listen": url.removeprefix("http://"),
            "model": "m",
            "engines": [{"name": "engine-a", "url": f"http://127.0.0.1:{stack.a.port}"}],
        }
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "target_stack.serve", "gateway", json.dumps(config)
        )
        try:
            await _ready(stack.session, url)
            body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": True}
            async with stack.session.post(f"{url}/v1/chat/completions", json=body) as reply:
                await reply.content.readany()
                process.send_signal(signal.SIGTERM)
                rest = await reply.content.read()
            assert rest.endswith(sse.DONE)
            assert await asyncio.wait_for(process.wait(), 10) == 0
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


async def _ready(session: aiohttp.ClientSession, url: str) -> None:
    end = time.monotonic() + 20
    while True:
        try:
            async with session.get(f"{url}/ping") as reply:
                assert reply.status == 200
                return
        except aiohttp.ClientConnectionError:
            assert time.monotonic() < end, "the gateway did not come up"
            await asyncio.sleep(0.05)
