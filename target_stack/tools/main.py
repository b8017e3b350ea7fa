"""The tools over plain HTTP: `POST /tools/{name}` with JSON arguments; GET `/tools`, `/audit`, `/ping`, `/metrics`.

Config: `listen`, `data_dir` (where the SQLite file lives; in memory when absent). Callers name themselves in
`x-caller`.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from aiohttp import web

from target_stack.fixtures import fixtures_dir, read_lines
from target_stack.service_metrics import RequestMetrics
from target_stack.tools.catalog import TOOLS, ToolError, call
from target_stack.tools.store import ToolStore
from target_stack.web_service import serve_until_term

_STATUS = {"unknown_tool": 404, "not_found": 404, "conflict": 409, "invalid_argument": 400}


class ToolService:
    """The routes around one store, whose single thread keeps SQLite off the event loop."""

    def __init__(self, store: ToolStore) -> None:
        """Take over the store; `lifetime` closes it."""
        self._store = store
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="store")
        self._metrics = RequestMetrics("tools")

    async def _in_thread(self, tool: str, text: str, caller: str) -> tuple[int, dict[str, Any]]:
        try:
            given = json.loads(text) if text else {}
        except json.JSONDecodeError as problem:
            return 400, ToolError("invalid_argument", f"the body is no JSON: {problem}").to_json()
        work = asyncio.get_running_loop().run_in_executor(
            self._thread, lambda: call(tool, given, caller=caller, wall=time.time(), store=self._store)
        )
        try:
            return 200, await work
        except ToolError as refused:
            return _STATUS[refused.code], refused.to_json()

    async def use(self, request: web.Request) -> web.Response:
        """POST /tools/{name}."""
        started, tool = time.monotonic(), request.match_info["name"]
        caller = request.headers.get("x-caller", "anonymous")
        status, body = await self._in_thread(tool, await request.text(), caller)
        known = tool if any(tool == t.name for t in TOOLS) else "unknown"
        self._metrics.observe(known, status, time.monotonic() - started)
        return web.json_response(body, status=status)

    async def audit(self, request: web.Request) -> web.Response:
        """GET /audit?after=N."""
        after = request.query.get("after", "0")
        if not after.isdecimal():
            return web.json_response(
                ToolError("invalid_argument", "after must be a number", "after").to_json(), status=400
            )
        lines = await asyncio.get_running_loop().run_in_executor(self._thread, self._store.audit, int(after))
        return web.json_response({"entries": lines})

    async def listing(self, _: web.Request) -> web.Response:
        """GET /tools."""
        tools = [{"name": t.name, "description": t.summary, "parameters": t.schema()} for t in TOOLS]
        return web.json_response({"tools": tools})

    async def ping(self, _: web.Request) -> web.Response:
        """GET /ping."""
        return web.json_response({"status": "ok"})

    async def metrics(self, _: web.Request) -> web.Response:
        """GET /metrics."""
        return web.Response(
            text=self._metrics.text(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
        )

    async def lifetime(self, _: web.Application) -> AsyncIterator[None]:
        """Close the store after the last request."""
        yield
        self._thread.shutdown()
        self._store.close()


def make_app(store: ToolStore) -> web.Application:
    """The application around an open store, which it closes at the end."""
    service, app = ToolService(store), web.Application()
    app.add_routes([
        web.post("/tools/{name}", service.use),
        web.get("/tools", service.listing),
        web.get("/audit", service.audit),
        web.get("/ping", service.ping),
        web.get("/metrics", service.metrics),
    ])  # fmt: skip
    app.cleanup_ctx.append(service.lifetime)
    return app


def main(config: Mapping[str, Any]) -> None:
    """Serve until SIGTERM."""
    folder = config.get("data_dir")
    orders = read_lines(fixtures_dir() / "documents" / "orders.jsonl")
    store = ToolStore(Path(folder) / "tools.sqlite" if folder else None, orders)
    serve_until_term(make_app(store), config["listen"])
