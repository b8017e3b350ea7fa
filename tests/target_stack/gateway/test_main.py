"""The gateway as a process: SIGTERM finishes what is in flight and then ends it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from tests.loopback import free_port

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("real_time")]


@asynccontextmanager
async def gateway(
    stack: Any, folder: str | None = None, **policies: Any
) -> AsyncIterator[tuple[str, asyncio.subprocess.Process]]:
    """A gateway of its own before engine-a of a stack, with a folder for its releases; its address and its process."""
    url = f"http://127.0.0.1:{free_port()}"
    config = {
        "listen": url.removeprefix("http://"),
        "model": "m",
        "engines": [{"name": "engine-a", "url": f"http://127.0.0.1:{stack.a.port}"}],
        "policies": policies,
        **({"data_dir": folder, "admin": f"{folder}/admin.sock"} if folder else {}),
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "target_stack.serve", "gateway", json.dumps(config)
    )
    try:
        await _ready(stack.session, url)
        yield url, process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


BODY = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": True}


async def test_sigterm_tells_health_refuses_new_work_finishes_the_stream_and_exits_zero(serve: Any, sse: Any) -> None:
    limits = {"drain": {"notice_s": 0.3, "finish_s": 5.0}, "deadline": {"inter_token_s": 10.0}}
    async with serve() as stack, gateway(stack, **limits) as (url, process):
        stack.a.script = (sse.frame("Hello"), 2.0, sse.frame(" you", "stop"), sse.DONE)
        async with stack.session.post(f"{url}/v1/chat/completions", json=BODY) as reply:
            await reply.content.readany()
            process.send_signal(signal.SIGTERM)
            await _until(lambda: _status(stack.session, "GET", f"{url}/health"), (503, None))
            await _until(lambda: _status(stack.session, "POST", f"{url}/v1/embeddings"), (503, "draining"))
            rest = await reply.content.read()
        assert rest.endswith(sse.DONE)
        assert await asyncio.wait_for(process.wait(), 10) == 0


async def test_releases_outlive_a_gateway_that_is_killed(serve: Any) -> None:
    with tempfile.TemporaryDirectory(prefix="b-") as folder:
        operators = aiohttp.ClientSession("http://gateway", connector=aiohttp.UnixConnector(f"{folder}/admin.sock"))
        async with serve() as stack, operators as operator:
            stack.a.models.append("m-next")
            async with gateway(stack, folder) as (_, process):
                async with operator.post("/admin/releases", json={"name": "r2", "model": "m-next"}) as started:
                    assert started.status == 201
                process.kill()
                await process.wait()
            async with gateway(stack, folder), operator.get("/admin/releases") as told:
                report = await told.json()
            assert (report["stable"]["name"], report["canary"]["name"], report["share"]) == ("first", "r2", 0.05)


@pytest.mark.parametrize(
    ("drain", "told"), [({"notice_s": 0.0, "finish_s": 0.3}, True), ({"kind": "none"}, False)], ids=["graceful", "none"]
)
async def test_a_stream_cut_by_sigterm_is_told_so_unless_there_is_no_drain(
    serve: Any, sse: Any, drain: dict[str, Any], told: bool
) -> None:
    deadline = {"inter_token_s": 14.0}
    async with serve() as stack, gateway(stack, drain=drain, deadline=deadline) as (url, process):
        stack.a.script = (sse.frame("Hello"), 20.0, sse.frame(" you", "stop"), sse.DONE)
        rest = b""
        async with stack.session.post(f"{url}/v1/chat/completions", json=BODY) as reply:
            await reply.content.readany()
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(aiohttp.ClientPayloadError):
                rest = await reply.content.read()
        assert told == (b'"code": "draining"' in rest)
        assert sse.DONE not in rest
        assert await asyncio.wait_for(process.wait(), 10) == 0


async def _status(session: aiohttp.ClientSession, method: str, url: str) -> tuple[int, str | None]:
    async with session.request(method, url, json=BODY) as reply:
        await reply.read()
        return reply.status, reply.headers.get("x-shed-reason")


async def _until(look: Callable[[], Awaitable[Any]], wanted: Any) -> None:
    end = time.monotonic() + 10
    while (seen := await look()) != wanted:
        assert time.monotonic() < end, f"{seen} instead of {wanted}"
        await asyncio.sleep(0.02)


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
