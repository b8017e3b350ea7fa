"""The embedder as a service: `POST /v1/embeddings`, `GET /ping`, `GET /metrics`.

Config: `listen`, `model` (the name it answers with).
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from aiohttp import web

from target_stack.embedder.api import BadRequest, parse, reply
from target_stack.service_metrics import RequestMetrics
from target_stack.web_service import serve_until_term


def _answer(text: str, model: str) -> tuple[int, dict[str, Any]]:
    try:
        return 200, reply(parse(json.loads(text)), model)
    except json.JSONDecodeError as problem:
        return 400, BadRequest(f"the body is no JSON: {problem}").to_json()
    except BadRequest as problem:
        return 400, problem.to_json()


def make_app(config: Mapping[str, Any]) -> web.Application:
    """The application; needs no socket."""
    model, metrics = config["model"], RequestMetrics("embedder")

    async def embeddings(request: web.Request) -> web.Response:
        started = time.monotonic()
        status, body = _answer(await request.text(), model)
        metrics.observe("embeddings", status, time.monotonic() - started)
        return web.json_response(body, status=status)

    async def ping(_: web.Request) -> web.Response:
        return web.json_response({"status": "ok", "model": model})

    async def exposition(_: web.Request) -> web.Response:
        return web.Response(text=metrics.text(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    app = web.Application()
    app.add_routes([web.post("/v1/embeddings", embeddings), web.get("/ping", ping), web.get("/metrics", exposition)])
    return app


def main(config: Mapping[str, Any]) -> None:
    """Serve until SIGTERM."""
    serve_until_term(make_app(config), config["listen"])
