"""What operators ask of the gateway, on a Unix socket that only its owner can open: users cannot reach it at all.

GET  /admin/releases             what is in force, and what the canary has shown so far
POST /admin/releases             {"name", "code", "model", "config", "canary": true}: a part left out is the stable
                                 release's; `canary: false` switches everybody at once
POST /admin/releases/rollback    {"release": name}: takes back the canary, or without one the stable release;
                                 with a name only if it is the one
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from aiohttp import web

from target_stack.gateway.config import Upstream
from target_stack.gateway.engine_client import open_session
from target_stack.gateway.errors import GatewayError, bad_request, error_reply
from target_stack.gateway.policies.release import BadRelease, CannotChange, Release
from target_stack.gateway.prompts import RAG_SYSTEM
from target_stack.gateway.requests import BODY_BYTES_MAX, json_object
from target_stack.gateway.wiring import Gateway
from target_stack.web_service import listen_privately

_MODELS_S = 1.0
_GATEWAY = web.AppKey("gateway", Gateway)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def make_admin(gateway: Gateway) -> web.Application:
    """The application; needs no socket."""
    app = web.Application(middlewares=[_in_openai_shape], client_max_size=BODY_BYTES_MAX)
    app[_GATEWAY] = gateway
    app.add_routes(
        [
            web.get("/admin/releases", _report),
            web.post("/admin/releases", _start),
            web.post("/admin/releases/rollback", _roll_back),
        ]
    )
    return app


@asynccontextmanager
async def open_admin(gateway: Gateway) -> AsyncIterator[None]:
    """Listen, mode 600, if the configuration names a socket. Raises OSError."""
    path = gateway.config.admin
    if path is None:
        yield
        return
    runner = await listen_privately(make_admin(gateway), path)
    try:
        yield
    finally:
        await runner.cleanup()


@web.middleware
async def _in_openai_shape(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except GatewayError as error:
        return error_reply(error)
    except BadRelease as problem:
        return error_reply(bad_request(str(problem), problem.param))
    except CannotChange as problem:
        return error_reply(bad_request(str(problem), status=409))
    except OSError as problem:
        return error_reply(GatewayError(500, f"the change was not kept: {problem}", kind="InternalServerError"))
    except web.HTTPException as error:
        return error_reply(bad_request(f"{request.method} {request.path}: {error.reason}", status=error.status))


async def _report(request: web.Request) -> web.Response:
    return web.json_response(request.app[_GATEWAY].releases.report())


async def _start(request: web.Request) -> web.Response:
    gateway = request.app[_GATEWAY]
    body = json_object(await request.read())
    canary = body.pop("canary", True)
    if not isinstance(canary, bool):
        raise bad_request("canary must be true or false", "canary")
    release = Release.from_json(body, like=gateway.releases.state.stable)
    await _check_served(gateway, release)
    (gateway.releases.start if canary else gateway.releases.switch)(release)
    return web.json_response(gateway.releases.report(), status=201)


async def _roll_back(request: web.Request) -> web.Response:
    releases = request.app[_GATEWAY].releases
    wanted = json_object(await request.read() or b"{}").get("release")
    wrong = releases.state.canary or releases.state.stable
    if wanted not in (None, wrong.name):
        raise CannotChange(f"{wrong.name!r} would be rolled back, not {wanted!r}")
    releases.roll_back()
    return web.json_response(releases.report())


async def _check_served(gateway: Gateway, release: Release) -> None:
    """Refuse now what could only fail its first users. Raises GatewayError."""
    if release.code not in RAG_SYSTEM:
        raise bad_request(f"there is no code {release.code!r}; there are {', '.join(RAG_SYSTEM)}", "code")
    if release.model == gateway.config.model:
        return
    async with open_session() as session:
        served = await asyncio.gather(*(_models(session, engine) for engine in gateway.config.engines))
    for engine, models in zip(gateway.config.engines, served, strict=True):
        if models is not None and release.model not in models:
            raise bad_request(f"{engine.name} does not serve {release.model!r}, but {', '.join(models)}", "model")


async def _models(session: aiohttp.ClientSession, engine: Upstream) -> list[str] | None:
    """The names that an engine serves; None when it does not say."""
    try:
        async with asyncio.timeout(_MODELS_S), session.get(f"{engine.url}/v1/models") as reply:
            listed: Any = await reply.json()
            return [str(model["id"]) for model in listed["data"]]
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError, KeyError, TypeError):
        return None
