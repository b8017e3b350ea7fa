"""The worker of a disaggregated engine: a process of its own that holds what lies in the KV blocks, and moves it.

Two listeners of a producer, as UCX and the side channel of NIXL are two: over one a peer learns whom it talks to, over
the other it reads blocks. Both speak HTTP/1.1 with bodies of our own, so that an observer can ping them.

    side channel   POST /agent                          ──► {"engine_id", "transfer"}
    transfer       POST /read {"engine_id", "blocks"}   ──► {"words": [[...], ...]} in a line, then the bytes of the KV
                   POST /taken {"request_id"}           ──► 200

A fetch waits for its blocks without any limit and asks for them by number alone: as measured on the original, whose
reader gets whatever lies there. Freezing this process stops the engine behind a healthy /health; killing it ends it.
"""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any, NoReturn

import aiohttp
from aiohttp import web

from target_stack import process
from target_stack.engine.config import EngineConfig
from target_stack.engine.kv_transfer import KvTransfer
from target_stack.web_service import split_address

_LINE_BYTES = 8 << 20
_AGAIN_S = 0.25
_NOTICE_S = 5.0


class NoTransfer(Exception):
    """The blocks could not be had; the message says why."""


class Worker:
    """What lies in the blocks, and who fetches from where. `tell` sends to the core."""

    def __init__(self, config: EngineConfig, settings: KvTransfer, engine_id: str) -> None:
        """Every block is empty; no peer is known."""
        self._config = config
        self._settings = settings
        self._engine_id = engine_id
        self._blocks: list[list[str]] = [[] for _ in range(config.num_gpu_blocks)]
        self._agents: dict[str, str] = {}
        self._fetches: dict[str, asyncio.Task[None]] = {}

    async def serve(self, sock: socket.socket) -> NoReturn:
        """Take the core's orders until it goes away. Raises EOFError then, OSError for a taken port."""
        reader, self._core = await asyncio.open_connection(sock=sock, limit=_LINE_BYTES)
        async with AsyncExitStack() as stack:
            connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=3600)
            timeout = aiohttp.ClientTimeout(total=None)
            self._session = await stack.enter_async_context(
                aiohttp.ClientSession(connector=connector, timeout=timeout, cookie_jar=aiohttp.DummyCookieJar())
            )
            if self._settings.role == "producer":
                await self._listen(stack, self._settings.side_channel, web.post("/agent", self._introduce))
                read, taken = web.post("/read", self._read_out), web.post("/taken", self._taken)
                await self._listen(stack, self._settings.transfer, read, taken)
            self._tell({"op": "ready"})
            while line := await reader.readline():
                self._obey(json.loads(line))
            raise EOFError

    async def _listen(self, stack: AsyncExitStack, address: str, *routes: web.RouteDef) -> None:
        app = web.Application()
        app.add_routes([web.get("/ping", _pong), *routes])
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, keepalive_timeout=3600)
        await runner.setup()
        stack.push_async_callback(runner.cleanup)
        host, port = split_address(address)
        await web.TCPSite(runner, host, port, reuse_address=True).start()

    def _tell(self, message: Mapping[str, Any]) -> None:
        self._core.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    def _obey(self, order: Mapping[str, Any]) -> None:
        match order["op"]:
            case "step":
                self._tell({"op": "stepped"})
            case "write":
                for block, words in order["blocks"]:
                    self._blocks[block] = words
            case "fetch":
                task = asyncio.get_running_loop().create_task(self._fetch(order["id"], order["from"]))
                self._fetches[order["id"]] = task
            case "drop":
                if (fetch := self._fetches.pop(order["id"], None)) is not None:
                    fetch.cancel()
            case other:
                raise ValueError(f"unknown order {other!r}")

    # As a producer.

    async def _introduce(self, _request: web.Request) -> web.Response:
        told = {"engine_id": self._engine_id, "transfer": self._settings.transfer_via or self._settings.transfer}
        return web.json_response(told)

    async def _read_out(self, request: web.Request) -> web.Response:
        asked = await request.json()
        if asked["engine_id"] != self._engine_id:
            return web.json_response({"error": "the memory of another life of this engine"}, status=409)
        if not all(0 <= block < len(self._blocks) for block in asked["blocks"]):
            return web.json_response({"error": "block ids out of range"}, status=416)
        words = [self._blocks[block] for block in asked["blocks"]]
        tokens = sum(map(len, words))
        body = json.dumps({"words": words}, separators=(",", ":")).encode() + b"\n"
        return web.Response(body=body + bytes(tokens * self._settings.bytes_per_token))

    async def _taken(self, request: web.Request) -> web.Response:
        self._tell({"op": "taken", "request": (await request.json())["request_id"]})
        return web.Response()

    # As a consumer.

    async def _fetch(self, name: str, reference: Mapping[str, Any]) -> None:
        began = time.monotonic()
        try:
            agent = await self._agent(reference)
            self._tell({"op": "stage", "id": name, "stage": "transfer"})
            words = await self._read_in(agent, reference)
        except NoTransfer as problem:
            self._fetches.pop(name, None)
            self._tell({"op": "failed", "id": name, "why": str(problem)})
            return
        self._tell({"op": "fetched", "id": name, "words": words, "seconds": time.monotonic() - began})
        await self._notify(agent, reference)
        self._fetches.pop(name, None)

    async def _agent(self, reference: Mapping[str, Any]) -> str:
        """Where the peer of this id lets its blocks be read; asked of it at the first meeting. Raises NoTransfer."""
        engine_id = reference["remote_engine_id"]
        side_channel = f"http://{reference['remote_host']}:{reference['remote_port']}"
        try:
            async with asyncio.timeout(self._settings.handshake_s):
                while engine_id not in self._agents:
                    met = await self._meet(side_channel)
                    if met.get("engine_id") == engine_id:
                        self._agents[engine_id] = met["transfer"]
                        break
                    await asyncio.sleep(_AGAIN_S)
        except TimeoutError:
            raise NoTransfer(f"no handshake with engine {engine_id} at {side_channel}") from None
        return self._agents[engine_id]

    async def _meet(self, side_channel: str) -> dict[str, Any]:
        try:
            async with self._session.post(f"{side_channel}/agent") as reply:
                told: dict[str, Any] = await reply.json()
                return told
        except (aiohttp.ClientError, OSError, ValueError):
            return {}

    async def _read_in(self, agent: str, reference: Mapping[str, Any]) -> list[str]:
        """The words in the blocks that the reference names, whoever wrote them. Raises NoTransfer."""
        engine_id, blocks = reference["remote_engine_id"], reference["remote_block_ids"][0]
        try:
            body = {"engine_id": engine_id, "blocks": blocks}
            async with self._session.post(f"http://{agent}/read", json=body) as reply:
                data = await reply.read()
        except (aiohttp.ClientError, OSError) as problem:
            self._agents.pop(engine_id, None)
            raise NoTransfer(f"lost the agent of engine {engine_id}: {problem}") from problem
        if reply.status != 200:
            raise NoTransfer(data.decode("utf-8", "replace"))
        return [word for block in json.loads(data.partition(b"\n")[0])["words"] for word in block]

    async def _notify(self, agent: str, reference: Mapping[str, Any]) -> None:
        body = {"request_id": reference["remote_request_id"]}
        try:
            async with asyncio.timeout(_NOTICE_S), self._session.post(f"http://{agent}/taken", json=body):
                pass
        except (TimeoutError, aiohttp.ClientError, OSError):
            self._tell({"op": "unnotified"})


async def _pong(_request: web.Request) -> web.Response:
    return web.Response()


def run(config: EngineConfig, settings: KvTransfer, engine_id: str, sock: socket.socket, parent: int) -> NoReturn:
    """Be the worker process until the core goes away. Raises EOFError then, OSError for a taken port."""
    process.die_with_parent(parent)
    process.set_title(f"{config.name} worker")
    asyncio.run(Worker(config, settings, engine_id).serve(sock))
    raise EOFError
