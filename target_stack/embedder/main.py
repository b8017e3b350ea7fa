"""The embedder as a service: `POST /v1/embeddings`, `GET /ping`, `GET /metrics`.

Config: `listen`, `model` (a name from `embedding.MODELS`, or `auto`). Ready means that the model is loaded and has
embedded something.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

from aiohttp import web

from target_stack.embedder.api import BadRequest, parse, reply
from target_stack.embedder.embedding import Embedder, load
from target_stack.embedder.worker import Worker
from target_stack.service_metrics import RequestMetrics
from target_stack.spans import ROUTE as SPANS
from target_stack.spans import SpanRing, serving
from target_stack.web_service import serve_until_term


async def _answer(text: str, worker: Worker, model: str) -> tuple[int, dict[str, Any]]:
    try:
        request = parse(json.loads(text))
    except json.JSONDecodeError as problem:
        return 400, BadRequest(f"the body is no JSON: {problem}").to_json()
    except BadRequest as problem:
        return 400, problem.to_json()
    return 200, reply(request, await worker.embed(request.inputs), model)


def make_app(embedder: Embedder) -> web.Application:
    """The application; needs no socket."""
    worker, metrics = Worker(embedder), RequestMetrics("embedder")
    spans = SpanRing(time.monotonic, secrets.randbits(63))

    async def embeddings(request: web.Request) -> web.Response:
        started = time.monotonic()
        with serving(spans, request.headers, "embeddings") as span:
            status, body = await _answer(await request.text(), worker, embedder.name)
            span.prompt_tokens = body.get("usage", {}).get("prompt_tokens")
            span.outcome = "ok" if status == 200 else f"status_{status}"
        metrics.observe("embeddings", status, time.monotonic() - started)
        return web.json_response(body, status=status)

    async def ping(_: web.Request) -> web.Response:
        return web.json_response({"status": "ok", "model": embedder.name, "fingerprint": embedder.fingerprint})

    async def exposition(_: web.Request) -> web.Response:
        return web.Response(text=metrics.text(), headers={"Content-Type": "text/plain; version=0.0.4; charset=utf-8"})

    async def spans_page(request: web.Request) -> web.Response:
        status, page = spans.page(request.query.get("after"))
        return web.Response(text=page, status=status, content_type="application/json")

    async def thread(_: web.Application) -> AsyncIterator[None]:
        yield
        worker.close()

    app = web.Application()
    app.cleanup_ctx.append(thread)
    app.add_routes(
        [
            web.post("/v1/embeddings", embeddings),
            web.get("/ping", ping),
            web.get("/metrics", exposition),
            web.get(SPANS, spans_page),
        ]
    )
    return app


def main(config: Mapping[str, Any]) -> None:
    """Serve until SIGTERM. Raises NoSuchModel, or OSError for a taken port."""
    embedder = load(config["model"])
    embedder.embed(["Is anybody there?"])  # the first run sets up memory; no question shall wait for that
    serve_until_term(make_app(embedder), config["listen"])
