"""What does the gateway add? The same streams straight from an engine, through the gateway, and through a bare hop.

    python benchmarks/gateway.py [--requests 50] [--rounds 12] [--tokens 16] [--at-once 1] [--profile FILE]

The engine is scripted: it sends `tokens` frames shaped as vLLM's, one every two milliseconds, so that the only
difference is who stands between. `bare` is the least that aiohttp can do: read the body, post it, write every chunk as
it comes. All three take turns in one run. Added latency is that of the first token against `straight`. CPU is that of
the process itself (/proc/PID/task/*/schedstat): what it uses without any request, and what a request adds to that. On
a busy machine caches are cold for everybody: the least round is then the best guess, and only ratios mean much.
`--profile` writes what cProfile saw of the gateway.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import aiohttp
from aiohttp import web

from chaos.load.report import quantile
from target_stack.gateway.main import main as gateway_main

MODEL = "brownout-chat"
QUESTION = {"model": MODEL, "messages": [{"role": "user", "content": "Tell me about autumn."}], "stream": True}
TOKEN_S = 0.002
IDLE_S = 2.0


def frame(content: str, finish: str | None = None) -> bytes:
    """One chunk as vLLM writes it."""
    choice = {"index": 0, "delta": {"content": content}, "logprobs": None, "finish_reason": finish, "token_ids": None}
    chunk = {
        "id": "chatcmpl-0123456789abcdef0123456789abcdef",
        "object": "chat.completion.chunk",
        "created": 1764500000,
    }
    return (
        b"data: " + json.dumps({**chunk, "model": MODEL, "choices": [choice]}, separators=(",", ":")).encode() + b"\n\n"
    )


def scripted_engine(tokens: int) -> web.Application:
    """An engine without a model."""
    frames = [*(frame(" word") for _ in range(tokens - 1)), frame(" end", "stop"), b"data: [DONE]\n\n"]

    async def chat(request: web.Request) -> web.StreamResponse:
        await request.read()
        response = web.StreamResponse(headers={"content-type": "text/event-stream; charset=utf-8"})
        await response.prepare(request)
        for each in frames[:-1]:
            await response.write(each)
            await asyncio.sleep(TOKEN_S)
        await response.write_eof(frames[-1])
        return response

    async def ping(_: web.Request) -> web.Response:
        return web.Response(text="pong")

    app = web.Application()
    app.add_routes([web.post("/v1/chat/completions", chat), web.get("/ping", ping)])
    return app


def bare_hop(engine: str) -> web.Application:
    """The least that stands between."""
    sessions: list[aiohttp.ClientSession] = []

    async def chat(request: web.Request) -> web.StreamResponse:
        sessions[:] = sessions or [aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))]
        async with sessions[0].post(f"{engine}/v1/chat/completions", data=await request.read()) as reply:
            response = web.StreamResponse(headers={"content-type": "text/event-stream; charset=utf-8"})
            await response.prepare(request)
            async for piece in reply.content.iter_any():
                await response.write(piece)
            await response.write_eof()
            return response

    app = web.Application()
    app.router.add_post("/v1/chat/completions", chat)
    return app


async def serve(app: web.Application, port: int) -> None:
    """Until killed."""
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    await asyncio.Event().wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def process(*arguments: str) -> Iterator[int]:
    """A process of its own; its pid."""
    with subprocess.Popen(arguments) as started:
        try:
            yield started.pid
        finally:
            started.terminate()


def cpu_s(pid: int) -> float:
    """CPU seconds of all threads of a process so far (proc(5): the first number of schedstat, nanoseconds)."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


async def until_up(session: aiohttp.ClientSession, url: str) -> None:
    end = time.monotonic() + 60
    while True:
        try:
            async with session.post(f"{url}/v1/chat/completions", json=QUESTION) as reply:
                assert reply.status == 200, await reply.text()
                await reply.read()
                return
        except aiohttp.ClientConnectionError:
            assert time.monotonic() < end, f"{url} did not come up"
            await asyncio.sleep(0.1)


async def first_tokens(session: aiohttp.ClientSession, url: str, requests: int, at_once: int) -> list[float]:
    """Milliseconds to the first bytes of the body, one stream after the other in each of `at_once` lanes."""
    found: list[float] = []

    async def lane() -> None:
        for _ in range(requests // at_once):
            began = time.perf_counter()
            async with session.post(f"{url}/v1/chat/completions", json=QUESTION) as reply:
                first = await reply.content.readany()
                found.append((time.perf_counter() - began) * 1000)
                body = first + await reply.read()
                assert body.endswith(b"[DONE]\n\n"), body[-200:]

    await asyncio.gather(*(lane() for _ in range(at_once)))
    return found


async def measure(urls: dict[str, str], pids: dict[str, int], options: argparse.Namespace) -> None:
    """Take turns, then print one line a way."""
    waits: dict[str, list[float]] = {way: [] for way in urls}
    idle: dict[str, float] = {}
    costs: dict[str, list[float]] = {way: [] for way in urls}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        for url in urls.values():
            await until_up(session, url)
            await first_tokens(session, url, 20, 1)
        for way, pid in pids.items():
            before = cpu_s(pid)
            await asyncio.sleep(IDLE_S)
            idle[way] = (cpu_s(pid) - before) / IDLE_S
        for _ in range(options.rounds):
            for way, url in urls.items():
                before, began = cpu_s(pids[way]), time.monotonic()
                found = await first_tokens(session, url, options.requests, options.at_once)
                spent_s = cpu_s(pids[way]) - before - idle[way] * (time.monotonic() - began)
                costs[way].append(spent_s * 1000 / len(found))
                waits[way] += found
    straight = waits["straight"]
    print(f"{options.tokens} tokens a stream, {len(straight)} streams a way, {options.at_once} at once")
    for way, found in waits.items():
        added = [quantile(found, q) - quantile(straight, q) for q in (0.5, 0.99)]
        print(
            f"{way:9} first token p50 {quantile(found, 0.5):6.2f} ms  p99 {quantile(found, 0.99):6.2f} ms"
            f"  added p50 {added[0]:5.2f} ms  p99 {added[1]:5.2f} ms"
            f"  CPU {idle[way] * 1000:5.1f} ms/s idle, {statistics.median(costs[way]):5.2f} ms a request"
            f" (least round {min(costs[way]):5.2f})"
        )


def run(options: argparse.Namespace) -> None:
    """Start all, measure, end all."""
    ports = {way: free_port() for way in ("straight", "gateway", "bare")}
    urls = {way: f"http://127.0.0.1:{port}" for way, port in ports.items()}
    config = {
        "listen": f"127.0.0.1:{ports['gateway']}",
        "model": MODEL,
        "engines": [{"name": "engine-a", "url": urls["straight"]}],
    }
    me = (sys.executable, __file__, "--tokens", str(options.tokens))
    gateway = (*me, "--serve", "gateway", json.dumps(config)) + (
        ("--profile", options.profile) if options.profile else ()
    )
    with ExitStack() as parts:
        pids = {
            "straight": parts.enter_context(process(*me, "--serve", "engine", str(ports["straight"]))),
            "gateway": parts.enter_context(process(*gateway)),
            "bare": parts.enter_context(process(*me, "--serve", f"bare {urls['straight']}", str(ports["bare"]))),
        }
        asyncio.run(measure(urls, pids, options))


def serve_part(part: str, where: str, options: argparse.Namespace) -> None:
    """One of the processes."""
    if part == "gateway":
        watch = cProfile.Profile()
        if options.profile:
            watch.enable()
        gateway_main(json.loads(where))
        if options.profile:
            watch.disable()
            watch.dump_stats(options.profile)
        return
    app = scripted_engine(options.tokens) if part == "engine" else bare_hop(part.removeprefix("bare "))
    asyncio.run(serve(app, int(where)))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--tokens", type=int, default=16)
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--profile", metavar="FILE")
    parser.add_argument("--serve", nargs=2, metavar=("PART", "WHERE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve_part(*given.serve, given)
    else:
        run(given)
