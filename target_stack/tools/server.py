"""The desk behind HTTP: `POST /mcp` for models, and beside it what operators read.

    POST /mcp      MCP, JSON replies: `authorization: Bearer <agent token>`, `_meta: {"idempotency-key"}`; in revision
                   2026-07-28 each request stands for itself, in older ones it belongs to a session
    GET /tools     what there is         GET /audit?after=N    every call       GET /ledger?after=N    every side effect
    GET /ping      alive                 GET /storage          the file takes a write
    GET /metrics   Prometheus text

A refusal is a tool error (`isError`, with `{"error": {"code", ...}}` as its structured content), never a protocol
error: the model shall read it.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import secrets
import signal
import time
from collections.abc import AsyncIterator, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, get_args

import mcp_types as mcp
import uvicorn
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from target_stack.fixtures import fixtures_dir, read_documents, read_lines
from target_stack.service_metrics import RequestMetrics
from target_stack.spans import ROUTE as SPANS
from target_stack.spans import SpanRing, serving
from target_stack.storage_check import ROUTE
from target_stack.tools.audit import AuditMode, open_log
from target_stack.tools.catalog import TOOLS
from target_stack.tools.desk import Desk, Done, Enforcement, ToolCall
from target_stack.tools.permissions import Register
from target_stack.tools.refusal import ToolError
from target_stack.tools.store import ToolStore
from target_stack.tools.wire import DEADLINE, KEY, MCP_PATH, REPLAYED, trace_id_of
from target_stack.web_service import DRAIN_S, split_address

_FLUSH_S = 1.0
_SESSION_IDLE_S = 300.0
_LISTED = {
    tool.name: mcp.Tool(
        name=tool.name,
        description=tool.summary,
        input_schema=tool.arguments.model_json_schema(),
        output_schema=tool.result.model_json_schema(),
        annotations=mcp.ToolAnnotations(read_only_hint=not tool.acts, idempotent_hint=True),
    )
    for tool in TOOLS
}


class ToolService:
    """The routes around one desk, whose single thread keeps SQLite off the event loop."""

    def __init__(self, desk: Desk, store: ToolStore, register: Register) -> None:
        """Take over the store; `lifetime` closes it."""
        self._desk = desk
        self._store = store
        self._register = register
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")
        self._metrics = RequestMetrics("tools")
        self._spans = SpanRing(time.monotonic, secrets.randbits(63))

    async def _in_thread(self, work: Callable[..., Any], *values: Any) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, *values)

    async def list_tools(
        self, ctx: ServerRequestContext[Any, Request], _: mcp.PaginatedRequestParams | None
    ) -> mcp.ListToolsResult:
        """tools/list: what this caller may call."""
        agent = self._register.identify(_token(ctx))
        return mcp.ListToolsResult(tools=[_LISTED[name] for name in _LISTED if agent and name in agent.tools])

    async def call_tool(
        self, ctx: ServerRequestContext[Any, Request], params: mcp.CallToolRequestParams
    ) -> mcp.CallToolResult:
        """tools/call."""
        started, outcome = time.monotonic(), "failed"
        known = params.name if params.name in _LISTED else "unknown"
        try:
            with serving(self._spans, _trace_headers(ctx), known) as span:
                done: Done = await self._in_thread(self._use, _call_of(ctx, params, started))
                span.outcome = outcome = "replayed" if done.replayed else "ok"
            return _result(done.result, replayed=done.replayed)
        except ToolError as refused:
            outcome = refused.code
            return _result(refused.to_json(), is_error=True)
        finally:
            self._metrics.observe(known, outcome, time.monotonic() - started)

    def _use(self, call: ToolCall) -> Done:
        """A call that waited for the thread past its deadline is not begun."""
        return self._desk.use(dataclasses.replace(call, wall=time.time(), mono=time.monotonic()))

    async def audit(self, request: Request) -> Response:
        """GET /audit?after=N&limit=M."""
        return await self._page(request, self._store.audit)

    async def ledger(self, request: Request) -> Response:
        """GET /ledger?after=N&limit=M."""
        return await self._page(request, self._store.ledger)

    async def _page(self, request: Request, read: Callable[[int, int], tuple[list[dict[str, Any]], int]]) -> Response:
        after, limit = request.query_params.get("after", "0"), request.query_params.get("limit", "1000")
        if not (after.isdecimal() and limit.isdecimal()):
            return JSONResponse(ToolError("invalid_argument", "after and limit must be numbers").to_json(), 400)
        entries, last = await self._in_thread(read, int(after), min(int(limit), 1000))
        return JSONResponse({"entries": entries, "last": last})

    async def listing(self, _: Request) -> Response:
        """GET /tools."""
        return JSONResponse(
            {"tools": [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in _LISTED.values()]}
        )

    async def ping(self, _: Request) -> Response:
        """GET /ping."""
        return JSONResponse({"status": "ok"})

    async def storage(self, _: Request) -> Response:
        """GET /storage."""
        status, told = await self._in_thread(self._store.check)
        return JSONResponse(told, status)

    async def spans(self, request: Request) -> Response:
        """GET /debug/spans?after=N."""
        status, page = self._spans.page(request.query_params.get("after"))
        return Response(page, status, media_type="application/json")

    async def metrics(self, _: Request) -> Response:
        """GET /metrics."""
        return PlainTextResponse(self._metrics.text(), media_type="text/plain; version=0.0.4")

    @contextlib.asynccontextmanager
    async def lifetime(self) -> AsyncIterator[None]:
        """Flush the audit now and then; close the store after the last request."""
        flushing = asyncio.create_task(self._flush_now_and_then())
        try:
            yield
        finally:
            flushing.cancel()
            await asyncio.wait({flushing})
            await self._in_thread(self._desk.flush)
            self._thread.shutdown()
            self._store.close()

    async def _flush_now_and_then(self) -> None:
        while True:
            await asyncio.sleep(_FLUSH_S)
            await self._in_thread(self._desk.flush)


def _call_of(ctx: ServerRequestContext[Any, Request], params: mcp.CallToolRequestParams, now: float) -> ToolCall:
    meta: Mapping[str, Any] = ctx.meta or {}
    headers: Mapping[str, str] = ctx.request.headers if ctx.request else {}
    key = meta.get(KEY)
    return ToolCall(
        tool=params.name,
        arguments=params.arguments or {},
        token=_token(ctx),
        key=None if key is None else str(key),
        trace_id=trace_id_of(_trace_headers(ctx)["traceparent"]),
        deadline=_deadline(headers.get(DEADLINE), now),
        wall=0.0,
        mono=now,
    )


def _trace_headers(ctx: ServerRequestContext[Any, Request]) -> Mapping[str, str]:
    """The caller's place in its trace: from the headers, or from where MCP has it."""
    meta: Mapping[str, Any] = ctx.meta or {}
    headers: Mapping[str, str] = ctx.request.headers if ctx.request else {}
    return {"traceparent": str(headers.get("traceparent") or meta.get("traceparent") or "")}


def _token(ctx: ServerRequestContext[Any, Request]) -> str:
    scheme, _, token = (ctx.request.headers.get("authorization", "") if ctx.request else "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _deadline(header: str | None, now: float) -> float | None:
    """A header that is no number sets none: the caller has a limit of its own anyway."""
    try:
        return None if header is None else now + float(header) / 1000
    except ValueError:
        return None


def _result(value: Mapping[str, Any], *, replayed: bool = False, is_error: bool = False) -> mcp.CallToolResult:
    return mcp.CallToolResult(
        content=[mcp.TextContent(type="text", text=json.dumps(value, ensure_ascii=False))],
        structured_content=dict(value),
        is_error=is_error,
        _meta={REPLAYED: True} if replayed else None,
    )


def make_app(service: ToolService) -> Starlette:
    """The SDK's application with our routes beside it."""
    server: Server[None] = Server(
        "brownout-tools",
        instructions="Tools of a small shop. A tool that acts needs an idempotency-key in _meta.",
        lifespan=lambda _: service.lifetime(),
        get_tool_input_schema=lambda name: _LISTED[name].input_schema if name in _LISTED else None,
        on_list_tools=service.list_tools,
        on_call_tool=service.call_tool,
    )
    routes = [
        Route("/tools", service.listing),
        Route("/audit", service.audit),
        Route("/ledger", service.ledger),
        Route("/ping", service.ping),
        Route(ROUTE, service.storage),
        Route("/metrics", service.metrics),
        Route(SPANS, service.spans),
    ]
    return server.streamable_http_app(
        streamable_http_path=MCP_PATH,
        json_response=True,
        session_idle_timeout=_SESSION_IDLE_S,
        custom_starlette_routes=routes,
    )


def open_service(config: Mapping[str, Any]) -> ToolService:
    """A service on the store that the config names. Raises ValueError, KeyError, OSError or sqlite3.Error."""
    folder = config.get("data_dir")
    orders = read_lines(fixtures_dir() / "documents" / "orders.jsonl")
    documents = ((document.id, document.body) for document in read_documents())
    store = ToolStore(Path(folder) / "tools.sqlite" if folder else None, orders, documents)
    register = Register.from_config(config.get("agents", {}))
    mode, enforcement = config.get("audit", "in_transaction"), config.get("enforcement", "enforce")
    for value, known, name in (
        (mode, get_args(AuditMode), "audit"),
        (enforcement, get_args(Enforcement), "enforcement"),
    ):
        if value not in known:
            raise ValueError(f"tools config: {name} {value!r} is none of {', '.join(known)}")
    return ToolService(Desk(store, register, open_log(mode, store), enforcement), store, register)


def serve(config: Mapping[str, Any]) -> None:
    """Serve until SIGTERM or SIGINT. Raises as open_service does."""
    host, port = split_address(config["listen"])
    app = make_app(open_service(config))
    # uvicorn raises the signal again when it has ended in order; nothing is left for it to end then.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    uvicorn.run(
        app, host=host, port=port, log_level="warning", access_log=False, timeout_graceful_shutdown=int(DRAIN_S)
    )
