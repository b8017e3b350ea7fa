"""The supervisor's control API on a Unix socket: look, hold, release, shut down. Only its owner may connect."""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from aiohttp import web

from target_stack.burdens import Burden, burden_of
from target_stack.web_service import listen_privately

_LONGEST_SOCKET_PATH = 107
"""`sun_path` holds 108 bytes with the closing zero (unix(7))."""


class Controlled(Protocol):
    """What the API needs of the supervisor. All but `status` raise KeyError for a target that is not there."""

    def status(self) -> dict[str, Any]:
        """The inventory record of this moment."""
        ...

    def hold(self, name: str, by: str) -> tuple[str, ...]:
        """Leave a target dead while it is dead; all its holds."""
        ...

    def burden(self, name: str, burden: Burden) -> tuple[str, ...]:
        """Lay something on a target's further lives; who has laid something now. Raises ValueError."""
        ...

    def release(self, name: str, by: str) -> tuple[str, ...]:
        """Drop a hold and a burden; the holds that are left."""
        ...

    def ask_to_stop(self) -> None:
        """Begin the shutdown."""
        ...


class SocketPathTooLong(Exception):
    """The state folder lies too deep for a Unix socket."""


async def _body(request: web.Request) -> Mapping[str, Any]:
    """A body with its `by`. Raises ValueError."""
    body = json.loads(await request.text() or "null")
    if not isinstance(body, dict) or not isinstance(body.get("by"), str) or not body["by"]:
        raise ValueError('the body must be {"by": "<who holds>"}')
    return body


def _change(
    verb: Callable[[str, Mapping[str, Any]], tuple[str, ...]], told: str
) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        name = request.match_info["name"]
        try:
            return web.json_response({told: list(verb(name, await _body(request)))})
        except KeyError:
            return web.json_response({"error": f"there is no target {name!r}"}, status=404)
        except ValueError as problem:
            return web.json_response({"error": str(problem)}, status=400)

    return handle


def make_app(stack: Controlled) -> web.Application:
    """The application; needs no socket."""

    async def status(_: web.Request) -> web.Response:
        return web.json_response(stack.status())

    async def shutdown(_: web.Request) -> web.Response:
        stack.ask_to_stop()
        return web.json_response({"stopping": True}, status=202)

    app = web.Application()
    app.add_routes([
        web.get("/status", status),
        web.post("/targets/{name}/hold", _change(lambda name, body: stack.hold(name, body["by"]), "holds")),
        web.post("/targets/{name}/burden", _change(lambda name, body: stack.burden(name, burden_of(body)), "burdens")),
        web.post("/targets/{name}/release", _change(lambda name, body: stack.release(name, body["by"]), "holds")),
        web.post("/shutdown", shutdown),
    ])  # fmt: skip
    return app


async def open_control(stack: Controlled, path: Path) -> web.AppRunner:
    """Listen on `path`, mode 600; `cleanup()` of the result closes it. Raises SocketPathTooLong or OSError."""
    if len(os.fsencode(path)) > _LONGEST_SOCKET_PATH:
        raise SocketPathTooLong(f"{path} is too long for a Unix socket; choose a --state-dir with a shorter path")
    return await listen_privately(make_app(stack), path)
