"""The HTTP face of the engine: routes, streams, refusals. Everything it says comes from the pure modules beside it."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from target_stack.engine import errors, replies, requests
from target_stack.engine.config import VERSION, EngineConfig
from target_stack.engine.http_metrics import UNCOUNTED, HttpMetrics, runtime_families
from target_stack.engine.link import CoreLink, Delta, Reply
from target_stack.engine.metrics import Metrics
from target_stack.engine.requests import Call
from target_stack.engine.text import Tokenizer, UnknownTokenError

_SCRAPE_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_MOST_BODY_BYTES = 16 << 20

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Api:
    """The routes of one engine. `idle` is set while no generation call is open; `draining` refuses new ones."""

    def __init__(self, config: EngineConfig, link: CoreLink, metrics: Metrics) -> None:
        """Serve the core behind `link`."""
        self._config = config
        self._link = link
        self._metrics = metrics
        self._http = HttpMetrics()
        self._tokenizer = Tokenizer()
        self._created = int(time.time())
        self._fingerprint = f"vllm-{VERSION}-{_stable_hex(f'{config.model}/{config.seed}')}"
        self._permission = uuid.uuid4().hex[:16]
        self._calls = 0
        self.idle = asyncio.Event()
        self.idle.set()
        self.draining = False

    def application(self) -> web.Application:
        """The routes, ready to be served."""
        app = web.Application(middlewares=[self._counted, _refusals], client_max_size=_MOST_BODY_BYTES)
        app.on_response_prepare.append(_sign)
        for path in ("/health", "/ping"):
            app.router.add_get(path, self._health)
        app.router.add_post("/ping", self._health)
        app.router.add_get("/version", _static({"version": VERSION}))
        app.router.add_get("/load", _static({"server_load": 0}))
        app.router.add_get("/metrics", self._scrape)
        app.router.add_get("/metrics/", self._scrape)
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/completions", self._completions)
        app.router.add_post("/tokenize", self._tokenize)
        app.router.add_post("/detokenize", self._detokenize)
        return app

    async def _health(self, _request: web.Request) -> web.Response:
        """200 unless the core is known to be dead: it is never asked, so a frozen one stays healthy."""
        return web.Response(status=503 if self._link.died.is_set() else 200)

    async def _scrape(self, _request: web.Request) -> web.Response:
        families = (*runtime_families(), *self._metrics.families, *self._http.families)
        lines = [line for family in families for line in family.lines()]
        return web.Response(body="\n".join([*lines, ""]).encode(), headers={"Content-Type": _SCRAPE_TYPE})

    async def _models(self, _request: web.Request) -> web.Response:
        return _json(replies.models(self._config.model, self._created, self._config.max_model_len, self._permission))

    async def _tokenize(self, request: web.Request) -> web.Response:
        body = await _body(request)
        tokens = self._tokenizer.encode(requests.tokenize_text(body, self._config))
        strings = [self._tokenizer.decode([token]) for token in tokens] if body.get("return_token_strs") else None
        limit = self._config.max_model_len
        return _json({"count": len(tokens), "max_model_len": limit, "tokens": tokens, "token_strs": strings})

    async def _detokenize(self, request: web.Request) -> web.Response:
        tokens = requests.detokenize_ids(await _body(request), self._config)
        try:
            return _json({"prompt": self._tokenizer.decode(tokens)})
        except (UnknownTokenError, TypeError) as unknown:
            raise errors.bad_request(str(unknown), "tokens") from None

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        body = await _body(request)
        call = requests.chat_call(body, self._config)
        head = self._head("chatcmpl", request, body)
        return await self._answer(request, call, head, replies.Chat(head))

    async def _completions(self, request: web.Request) -> web.StreamResponse:
        body = await _body(request)
        call = requests.completion_call(body, self._config, self._tokenizer)
        head = self._head("cmpl", request, body)
        return await self._answer(request, call, head, replies.Completion(head))

    def _head(self, prefix: str, request: web.Request, body: Any) -> replies.Head:
        """The id is the caller's X-Request-Id, if there is one."""
        name = request.headers.get("X-Request-Id") or body.get("request_id") or uuid.uuid4().hex[:16]
        return replies.Head(f"{prefix}-{name}", int(time.time()), self._config.model, self._fingerprint)

    async def _answer(
        self, request: web.Request, call: Call, head: replies.Head, dialect: replies.Dialect
    ) -> web.StreamResponse:
        """Generate. Whatever ends this coroutine early, most of all the client's leaving, ends the work in the core."""
        if self.draining:
            raise errors.shutting_down()
        reply = self._link.submit(call)
        self._calls += 1
        self.idle.clear()
        try:
            if call.stream:
                return await _stream(request, reply, _FrameWriter(call, dialect, head))
            choices = await _collect(reply)
            return _json_bytes(dialect.whole(choices, sum(call.prompt_tokens), reply.generated_tokens))
        finally:
            self._link.abort(reply)
            self._calls -= 1
            if not self._calls:
                self.idle.set()

    @web.middleware
    async def _counted(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Count calls by route, as vLLM's instrumentation does; the routes of probes and scrapes stay out."""
        began = time.monotonic()
        response = await handler(request)
        if request.path.rstrip("/") not in UNCOUNTED:
            resource = request.match_info.route.resource
            self._http.record(
                resource.canonical if resource else "none",
                request.method,
                response.status,
                request_bytes=request.content_length or 0,
                response_bytes=response.content_length or 0,
                seconds=time.monotonic() - began,
            )
        return response


async def _stream(request: web.Request, reply: Reply, writer: _FrameWriter) -> web.StreamResponse:
    """Headers at once, then silence until the first token; a failure is a frame, and [DONE] follows in any case."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
    await response.prepare(request)
    try:
        async for deltas in reply.batches():
            await response.write(writer.frames(deltas))
        await response.write(writer.ending())
    except errors.ApiError as failure:
        await response.write(replies.error_frame(failure.body))
    await response.write(replies.DONE)
    await response.write_eof()
    return response


class _FrameWriter:
    """Turns tokens into stream frames and keeps the counts that usage frames need."""

    def __init__(self, call: Call, dialect: replies.Dialect, head: replies.Head) -> None:
        self._call = call
        self._dialect = dialect
        self._head = head
        self._started = False
        self._tokens = [0] * (len(call.prompts) * call.n)

    def frames(self, deltas: list[Delta]) -> bytes:
        """The frames of these tokens; before the very first go the role frames of all choices."""
        opening = b"" if self._started else self._dialect.first(len(self._tokens))
        self._started = True
        return b"".join([opening, *map(self._frame, deltas)])

    def ending(self) -> bytes:
        """The usage frame, if it was asked for."""
        if not self._call.include_usage:
            return b""
        return self._dialect.usage(sum(self._call.prompt_tokens), sum(self._tokens))

    def _frame(self, delta: Delta) -> bytes:
        choice, piece, finish, stop_reason = delta
        call = self._call
        if call.echo and self._tokens[choice] == 0:
            piece = call.prompts[choice // call.n] + piece
        self._tokens[choice] += finish != "abort"
        extra = ""
        if call.continuous_usage:
            extra = replies.usage_extra(call.prompt_tokens[choice // call.n], self._tokens[choice])
        if finish is None:
            return self._dialect.token(choice, piece, extra)
        if not call.include_usage:
            extra += replies.fingerprint_extra(self._head)
        return self._dialect.last(choice, piece, finish, stop_reason, extra)


async def _collect(reply: Reply) -> list[replies.Choice]:
    """Wait for the whole answer. Raises ApiError."""
    call = reply.call
    texts = [call.prompts[place] if call.echo else "" for place in range(len(call.prompts)) for _ in range(call.n)]
    ends: list[tuple[str, str | None]] = [("abort", None)] * len(texts)
    async for deltas in reply.batches():
        for choice, piece, finish, stop_reason in deltas:
            texts[choice] += piece
            if finish is not None:
                ends[choice] = (finish, stop_reason)
    return [replies.Choice(text, *end) for text, end in zip(texts, ends, strict=True)]


async def _body(request: web.Request) -> Any:
    if request.content_type != "application/json":
        raise errors.wrong_content_type()
    return requests.parse_json(await request.read())


@web.middleware
async def _refusals(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Refusals as JSON: ours in vLLM's shape, the router's in its framework's."""
    try:
        return await handler(request)
    except errors.ApiError as refusal:
        return _json(refusal.body, status=refusal.code)
    except web.HTTPException as refusal:
        return _json({"detail": refusal.reason}, status=refusal.status)


async def _sign(_request: web.Request, response: web.StreamResponse) -> None:
    response.headers["Server"] = "uvicorn"
    response.headers["Vary"] = "Origin"


def _static(value: dict[str, Any]) -> Handler:
    async def handler(_request: web.Request) -> web.Response:
        return _json(value)

    return handler


def _json(value: Any, status: int = 200) -> web.Response:
    return _json_bytes(replies.json_bytes(value), status)


def _json_bytes(body: bytes, status: int = 200) -> web.Response:
    return web.Response(status=status, body=body, content_type="application/json")


def _stable_hex(text: str) -> str:
    return uuid.uuid5(uuid.NAMESPACE_OID, text).hex[:8]
