"""The HTTP face of the engine: routes, streams, refusals. Everything it says comes from the pure modules beside it."""

from __future__ import annotations

import asyncio
import secrets
import time
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from target_stack.engine import errors, replies, requests
from target_stack.engine.adapters import Luck
from target_stack.engine.config import VERSION, EngineConfig
from target_stack.engine.frames import KEEP_ALIVE, FrameWriter
from target_stack.engine.http_metrics import UNCOUNTED, HttpMetrics, runtime_families
from target_stack.engine.link import CoreLink, Reply
from target_stack.engine.metrics import Metrics
from target_stack.engine.requests import Call
from target_stack.engine.text import Tokenizer, UnknownTokenError
from target_stack.spans import ROUTE as SPANS
from target_stack.spans import Serving, SpanRing, serving

_SCRAPE_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_MOST_BODY_BYTES = 16 << 20
_GUARDED = ("/v1", "/v2", "/inference", "/cohere")
_REQUEST_ID = "request_id"

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
        self._luck = Luck(config.seed, config.adapters)
        self._permission = uuid.uuid4().hex[:16]
        self._calls = 0
        self._spans = SpanRing(time.monotonic, secrets.randbits(63))
        self.idle = asyncio.Event()
        self.idle.set()
        self.draining = False

    def application(self) -> web.Application:
        """The routes, ready to be served."""
        middlewares = [self._counted, self._guarded, _refusals]
        app = web.Application(middlewares=middlewares, client_max_size=_MOST_BODY_BYTES)
        app.on_response_prepare.append(_sign)
        for path in ("/health", "/ping"):
            app.router.add_get(path, self._health)
        app.router.add_post("/ping", self._health)
        app.router.add_get("/version", _static({"version": VERSION}))
        app.router.add_get("/load", self._load)
        app.router.add_get("/metrics", self._scrape)
        app.router.add_get("/metrics/", self._scrape)
        app.router.add_get(SPANS, self._spans_page)
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/completions", self._completions)
        app.router.add_post("/tokenize", self._tokenize)
        app.router.add_post("/detokenize", self._detokenize)
        return app

    async def _health(self, _request: web.Request) -> web.Response:
        """200 unless the core is known to be dead: it is never asked, so a frozen one stays healthy."""
        return web.Response(status=503 if self._link.died.is_set() else 200)

    async def _load(self, _request: web.Request) -> web.Response:
        return _json({"server_load": self._calls if self._config.enable_server_load_tracking else 0})

    async def _scrape(self, _request: web.Request) -> web.Response:
        families = (*runtime_families(), *self._metrics.families, *self._http.families)
        lines = [line for family in families for line in family.lines()]
        return web.Response(body="\n".join([*lines, ""]).encode(), headers={"Content-Type": _SCRAPE_TYPE})

    async def _spans_page(self, request: web.Request) -> web.Response:
        status, page = self._spans.page(request.query.get("after"))
        return _json_bytes(page.encode(), status)

    async def _models(self, _request: web.Request) -> web.Response:
        config = self._config
        listed = replies.models(
            config.model, self._created, config.max_model_len, self._permission, tuple(config.adapters)
        )
        return _json(listed)

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
        call = requests.chat_call(body, self._config, request.headers)
        head = self._head("chatcmpl", request, body, call)
        return await self._answer(request, call, head, replies.Chat(head))

    async def _completions(self, request: web.Request) -> web.StreamResponse:
        body = await _body(request)
        call = requests.completion_call(body, self._config, self._tokenizer, request.headers)
        head = self._head("cmpl", request, body, call)
        return await self._answer(request, call, head, replies.Completion(head))

    def _head(self, prefix: str, request: web.Request, body: Any, call: Call) -> replies.Head:
        """The id is the caller's X-Request-Id, if there is one."""
        name = request.headers.get("X-Request-Id") or body.get("request_id") or uuid.uuid4().hex[:16]
        return replies.Head(f"{prefix}-{name}", int(time.time()), call.model, self._fingerprint)

    async def _answer(
        self, request: web.Request, call: Call, head: replies.Head, dialect: replies.Dialect
    ) -> web.StreamResponse:
        """Generate, and write down what it took."""
        with serving(self._spans, request.headers, "completions") as span:
            return await self._generate(request, call, head, dialect, span)

    async def _generate(
        self, request: web.Request, call: Call, head: replies.Head, dialect: replies.Dialect, span: Serving
    ) -> web.StreamResponse:
        """Whatever ends this coroutine early, most of all the client's leaving, ends the work in the core."""
        if self.draining:
            raise errors.shutting_down()
        if self._luck.fails(call.model):
            self._metrics.finished["error"].value += 1
            raise errors.failed_request()
        reply = self._link.submit(call, head.id)
        self._calls += 1
        self.idle.clear()
        try:
            if call.stream:
                writer = FrameWriter(call, dialect, head, self._config.stream_interval)
                return await _stream(request, reply, writer, self._config.sse_keep_alive_interval)
            choices = await _collect(reply)
            body = dialect.whole(choices, sum(call.prompt_tokens), reply.generated_tokens, reply.kv)
            whole = _json_bytes(body)
            whole.headers.update(self._metrics.load_report(request.headers.get("endpoint-load-metrics-format", "")))
            return whole
        finally:
            span.prompt_tokens, span.output_tokens = reply.prefilled_tokens, reply.generated_tokens
            span.outcome = reply.outcome
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

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Ask for the key, where there is one, on the routes that cost something; and name the request if told to."""
        if self._config.api_key is not None and request.path.startswith(_GUARDED):
            scheme, _, key = request.headers.get("Authorization", "").partition(" ")
            if scheme.lower() != "bearer" or not secrets.compare_digest(key.encode(), self._config.api_key.encode()):
                return _json({"error": "Unauthorized"}, status=401)
        if self._config.enable_request_id_headers:
            request[_REQUEST_ID] = request.headers.get("X-Request-Id") or uuid.uuid4().hex
        return await handler(request)


async def _stream(request: web.Request, reply: Reply, writer: FrameWriter, keep_alive_s: float) -> web.StreamResponse:
    """Headers at once, then silence until the first token; a failure is a frame, and [DONE] follows in any case."""
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
    await response.prepare(request)
    try:
        async for deltas in reply.batches(keep_alive_s):
            if frames := writer.frames(deltas) if deltas else KEEP_ALIVE:
                await response.write(frames)
        await response.write(writer.ending())
    except errors.ApiError as failure:
        await response.write(replies.error_frame(failure.body))
    await response.write(replies.DONE)
    await response.write_eof()
    return response


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


async def _sign(request: web.Request, response: web.StreamResponse) -> None:
    if _REQUEST_ID in request:
        response.headers["X-Request-Id"] = request[_REQUEST_ID]
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
