"""A whole gateway on loopback between scripted upstreams, all in one event loop whose time is not the machine's."""

from __future__ import annotations

import asyncio
import inspect
import json
import random
import re
import selectors
import struct
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from target_stack.gateway.app import make_app
from target_stack.gateway.config import GatewayConfig
from target_stack.gateway.wiring import Gateway, open_gateway
from tests.target_stack.gateway.listening import Listening

QUICK: dict[str, Any] = {
    "deadline": {
        "total_s": 5.0,
        "per_try_s": 4.0,
        "first_token_s": 0.3,
        "inter_token_s": 0.3,
        "connect_s": 0.2,
        "agent_s": 4.0,
    },
    "breaker": {"open_s": 0.2, "consecutive_failures": 3},
    "outlier": {"liveness_period_s": 0.05, "probe_period_s": 0.1, "probe_timeout_s": 0.2},
    "shed_quiet_s": 0.2,
    "recall": {"kind": "none"},  # an examination would be among the calls that tests count
}


_PAGE = (Path(__file__).parents[3] / "docs" / "observability.md").read_text()
DOCUMENTED = set(re.findall(r"`([a-z_]+)`", _PAGE.split("## Events")[1].split("## The structured log")[0]))


class QuietTime(selectors.DefaultSelector):
    """Time that stands still while any socket has something to say, then jumps to the next timer.

    However busy the machine is, no limit runs out on a peer that answers at once; and no silence is waited for.
    """

    QUIET_S = 0.003  # loopback delivers within the send itself, or a few scheduler ticks later

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        events = super().select(timeout if timeout is None else min(timeout, self.QUIET_S))
        if not events and timeout is not None:
            self.now += max(0.0, timeout)
        return events


class QuietTimeLoop(asyncio.SelectorEventLoop):
    """The event loop with that time: for everything that lives in the test's own process."""

    def __init__(self) -> None:
        self._quiet = QuietTime()
        super().__init__(self._quiet)

    def time(self) -> float:
        return self._quiet.now


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run `async def` tests, in quiet time unless they ask for `real_time`."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    wanted = pyfuncitem._fixtureinfo.argnames
    loop_factory = None if "real_time" in pyfuncitem.fixturenames else QuietTimeLoop
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in wanted}))
    return True


@pytest.fixture
def real_time() -> None:
    """For a test that waits for another process."""


def frame(content: str | None = None, finish: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": {} if content is None else {"content": content}, "finish_reason": finish}
    return data({"id": "chatcmpl-1", "created": 1, "model": "fake", "choices": [choice], **more})


def data(value: Any) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"
ENGINE_DIED = data({"error": {"message": "EngineCore died", "type": "InternalServerError", "param": None, "code": 500}})
WHOLE = (frame(""), frame("Hello"), frame(" there", "stop"), DONE)


class FakeEngine:
    """Plays `script`: bytes are sent, floats are pauses in seconds, `cut` drops the connection, an int is a status."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.script: tuple[Any, ...] = WHOLE
        self.frozen = False
        self.ping_status = 200
        self.models = ["brownout-chat", "brownout-chat-v2"]
        self.reply_headers: dict[str, str] = {}
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[Mapping[str, str]] = []
        self.left = 0
        self.port = 0
        self._runner: web.AppRunner | None = None

    @property
    def asked(self) -> list[dict[str, Any]]:
        """Bodies of real requests, probes left out."""
        return [body for body in self.bodies if body["messages"][-1]["content"] != "ping"]

    async def start(self) -> None:
        app = web.Application()
        app.add_routes([web.post("/v1/chat/completions", self._chat), web.get("/ping", self._ping)])
        app.router.add_get("/v1/models", self._models)
        self._runner = web.AppRunner(app, handler_cancellation=True, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        if self._runner:
            await self._runner.cleanup()
            self._runner = None

    async def _ping(self, request: web.Request) -> web.Response:
        return web.Response(status=self.ping_status)

    async def _models(self, request: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": model} for model in self.models]})

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        self.bodies.append(await request.json())
        self.headers.append(request.headers)
        try:
            if self.frozen:
                await asyncio.sleep(60)
            return await self._play(request)
        except asyncio.CancelledError:
            self.left += 1
            raise

    async def _play(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream; charset=utf-8"})
        for step in self.script:
            if isinstance(step, int) and step >= 400:
                error = {"message": "engine says no", "type": "BadRequestError", "param": "input_tokens", "code": step}
                return web.json_response({"error": error}, status=step, headers=self.reply_headers)
            if isinstance(step, float):
                await asyncio.sleep(step)
                continue
            if step == "cut":
                assert request.transport
                request.transport.close()
                return response
            if not response.prepared:
                await response.prepare(request)
            await response.write(step)
        return response


class FakeStore(Listening):
    """Speaks just enough of PostgreSQL's wire protocol to answer one query; silent when `frozen`, in trouble with a
    `bad_disk`.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rows = [("doc-17", "Headphones can be returned within 45 days."), ("doc-3", "Shipping is free.")]
        self.connections = 0
        self.queries: list[str] = []
        self.startups: list[str] = []
        self.bad_disk = False
        self.added = 1  # rows that an INSERT finds room for

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            length = struct.unpack("!I", await reader.readexactly(4))[0]
            self.startups.append((await reader.readexactly(length - 4)).replace(b"\0", b" ").decode(errors="replace"))
            ready = b"Z\0\0\0\5I"
            writer.write(b"R\0\0\0\x08\0\0\0\0" + ready)
            while True:
                kind, length = struct.unpack("!cI", await reader.readexactly(5))
                message = await reader.readexactly(length - 4)
                if kind == b"P":
                    self.queries.append(message.split(b"\0")[1].decode())
                if kind == b"X":
                    break
                if kind == b"S":
                    if self.frozen:
                        await asyncio.sleep(60)
                    writer.write((self._trouble() if self.bad_disk else self._answer()) + ready)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def _trouble(self) -> bytes:
        return _message(b"E", b"SERROR\0C58030\0Mcould not read block 7: Input/output error\0\0")

    def _answer(self) -> bytes:
        if self.queries[-1].startswith("INSERT"):
            done = _message(b"C", f"INSERT 0 {self.added}\0".encode())
            return _message(b"1", b"") + _message(b"2", b"") + _message(b"n", b"") + done
        columns = b"".join(name + struct.pack("!xIHIhih", 0, 0, 25, -1, -1, 0) for name in (b"id", b"body"))
        described = _message(b"T", struct.pack("!H", 2) + columns)
        rows = b""
        for row in self.rows:
            cells = b"".join(struct.pack("!I", len(cell.encode())) + cell.encode() for cell in row)
            rows += _message(b"D", struct.pack("!H", 2) + cells)
        done = _message(b"C", f"SELECT {len(self.rows)}\0".encode())
        return _message(b"1", b"") + _message(b"2", b"") + described + rows + done


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


class FakeServices:
    """Embedder and tools in one server; `delay_s` and `status` apply to both. The next `losses` tool calls lose their
    reply; `refusal` is the tools' answer instead of a result.
    """

    def __init__(self) -> None:
        self.delay_s = 0.0
        self.status = 200
        self.losses = 0
        self.refusal: dict[str, Any] | None = None
        self.listing: list[dict[str, Any]] = []
        self.reply_headers: dict[str, str] = {}
        self.calls: list[tuple[str, dict[str, Any], Mapping[str, str]]] = []
        self.port = 0
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        app = web.Application()
        app.add_routes([web.post("/{path:.*}", self._any)])
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        if self._runner:
            await self._runner.cleanup()
            self._runner = None

    async def _any(self, request: web.Request) -> web.Response:
        body = await request.json()
        if body.get("method") == "tools/list":
            return web.json_response({"jsonrpc": "2.0", "id": body["id"], "result": {"tools": self.listing}})
        self.calls.append((request.path, body, request.headers))
        await asyncio.sleep(self.delay_s)
        if request.path == "/v1/embeddings":
            return web.json_response({"data": [{"embedding": [0.5, 0.25]}]}, status=self.status)
        return self._tool_result(request, body)

    def _tool_result(self, request: web.Request, body: dict[str, Any]) -> web.Response:
        if self.losses:
            self.losses -= 1
            assert request.transport
            request.transport.abort()
        value = self.refusal or {"echo": body["params"]["arguments"]}
        result = {"structuredContent": value, "isError": self.refusal is not None}
        reply = {"jsonrpc": "2.0", "id": body["id"], "result": result}
        return web.json_response(reply, status=self.status, headers=self.reply_headers)


@dataclass
class Stack:
    """The gateway and everything around it."""

    a: FakeEngine = field(default_factory=lambda: FakeEngine("engine-a"))
    b: FakeEngine = field(default_factory=lambda: FakeEngine("engine-b"))
    small: FakeEngine = field(default_factory=lambda: FakeEngine("engine-small"))
    store: FakeStore = field(default_factory=FakeStore)
    embedder: FakeServices = field(default_factory=FakeServices)
    tools: FakeServices = field(default_factory=FakeServices)
    gateway: Gateway = None  # type: ignore[assignment]  # set as soon as it runs
    session: aiohttp.ClientSession = None  # type: ignore[assignment]  # set as soon as it runs
    url: str = ""

    def parts(self) -> tuple[Any, ...]:
        return (self.a, self.b, self.small, self.store, self.embedder, self.tools)

    def only_a(self) -> None:
        """Make engine-b look busy, so that the next first try goes to engine-a."""
        pool = self.gateway.pools[0]
        next(replica for replica in pool if replica.name == "engine-b").in_flight += 10

    async def chat(
        self, *, route: str = "chat/completions", headers: dict[str, str] | None = None, **fields: Any
    ) -> Reply:
        body = {"model": "brownout-chat", "messages": [{"role": "user", "content": "Hi?"}], "stream": True, **fields}
        return await self.post(f"/v1/{route}", json=body, headers=headers)

    async def post(self, path: str, **options: Any) -> Reply:
        clock = asyncio.get_running_loop().time
        started = clock()
        async with self.session.post(self.url + path, **options) as reply:
            return Reply(reply.status, reply.headers, await reply.text(), clock() - started)

    async def get(self, path: str) -> Reply:
        async with self.session.get(self.url + path) as reply:
            return Reply(reply.status, reply.headers, await reply.text(), 0.0)

    def events(self, name: str | None = None) -> list[dict[str, Any]]:
        found = self.gateway.telemetry.events.after(0)["events"]
        return [event for event in found if name in (None, event["name"])]

    async def until(self, seen: Callable[[], Any], within_s: float = 5.0) -> None:
        clock = asyncio.get_running_loop().time
        end = clock() + within_s
        while not seen():
            assert clock() < end, f"not seen in {within_s} s"
            await asyncio.sleep(0.01)


@dataclass
class Reply:
    """A finished reply."""

    status: int
    headers: Mapping[str, str]
    text: str
    took_s: float

    @property
    def json(self) -> Any:
        return json.loads(self.text)

    @property
    def frames(self) -> list[Any]:
        """JSON of every frame; `[DONE]` as text."""
        found = [line[6:] for line in self.text.split("\n") if line.startswith("data: ")]
        return [line if line == "[DONE]" else json.loads(line) for line in found]

    @property
    def content(self) -> str:
        chunks = [one for one in self.frames if isinstance(one, dict) and one.get("choices")]
        return "".join(one["choices"][0]["delta"].get("content") or "" for one in chunks)


Serve = Callable[..., Any]


@pytest.fixture
def serve() -> Serve:
    """`async with serve(**policies) as stack`; `gateway` replaces keys of the configuration around the policies."""

    @asynccontextmanager
    async def running(gateway: Mapping[str, Any] | None = None, **policies: Any) -> AsyncIterator[Stack]:
        stack, clock = Stack(), asyncio.get_running_loop().time
        async with AsyncExitStack() as exits:
            for part in stack.parts():
                await part.start()
                exits.push_async_callback(part.stop)
            config = GatewayConfig.from_config({**_config(stack, {**QUICK, **policies}), **(gateway or {})})
            stack.gateway = await exits.enter_async_context(open_gateway(config, clock, random.Random(1)))
            stop = config.policies.answer.client_gone == "stop"
            runner = web.AppRunner(make_app(stack.gateway), handler_cancellation=stop, access_log=None)
            await runner.setup()
            exits.push_async_callback(runner.cleanup)
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            stack.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            stack.session = await exits.enter_async_context(aiohttp.ClientSession())
            yield stack
            told = {event["name"] for event in stack.events()}
            assert told <= DOCUMENTED, "write the new event into docs/observability.md"

    return running


def _config(stack: Stack, policies: dict[str, Any]) -> dict[str, Any]:
    def url(part: Any) -> str:
        return f"http://127.0.0.1:{part.port}"

    return {
        "listen": "127.0.0.1:0",
        "model": "brownout-chat",
        "engines": [{"name": one.name, "url": url(one)} for one in (stack.a, stack.b)],
        "fallback": {"name": "engine-small", "url": url(stack.small), "model": "brownout-small"},
        "embedder": url(stack.embedder),
        "vector_store": f"127.0.0.1:{stack.store.port}",
        "tools": url(stack.tools),
        "tools_token": "gateway-token",
        "policies": policies,
    }


@pytest.fixture
def sse() -> Any:
    """The bytes of frames, for scripts: `sse.frame("Hi")`, `sse.DONE`, `sse.ENGINE_DIED`."""

    class Sse:
        frame = staticmethod(frame)
        data = staticmethod(data)
        DONE = DONE
        ENGINE_DIED = ENGINE_DIED

    return Sse
