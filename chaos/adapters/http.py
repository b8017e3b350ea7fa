"""Short HTTP calls over TCP and Unix sockets; trouble on the way is part of the reply, never an exception.

The `error` of a reply without status begins with one word that a caller may decide on:

    absent    there is no such Unix socket
    refused   nobody listens there
    timeout   no whole reply in time
    broken    anything else on the wire
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

from chaos.ports import HttpReply

_UNIX = "unix://"
_KEEP_IDLE_S = 4.0  # let go before any server does (vLLM's uvicorn after 5 s): a POST on a closing connection is lost
_TROUBLE = (aiohttp.ClientError, HttpProcessingError, OSError, ValueError)


def split_unix(url: str) -> tuple[str, str]:
    """`unix:///run/x.sock:/status` as socket path and route. Raises ValueError."""
    path, colon, route = url.removeprefix(_UNIX).partition(":/")
    if not url.startswith(_UNIX) or not colon:
        raise ValueError(f"{url!r} is not unix:///path/to.sock:/route")
    return path, "/" + route


class HttpCalls:
    """The `Http` port. Connections are kept and reused, so one value belongs to one event loop; `aclose` ends them."""

    def __init__(self) -> None:
        """Nothing is opened before the first call."""
        self._sessions: dict[str, aiohttp.ClientSession] = {}

    async def call(
        self,
        method: str,
        url: str,
        json: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 2.0,
        token_file: str | None = None,
    ) -> HttpReply:
        """One call; `timeout_s` bounds it from connect to the last byte."""
        if token_file:
            headers = {**(headers or {}), **_bearer(token_file)}
        session, url = self._route(url)
        try:
            async with (
                asyncio.timeout(timeout_s),
                session.request(
                    method, URL(url, encoded=True), json=json, headers=headers, allow_redirects=False
                ) as reply,
            ):
                body = (await reply.read()).decode(errors="replace")
        except _TROUBLE as error:
            return HttpReply(status=0, body="", headers={}, error=f"{_word(error)}: {error or type(error).__name__}")
        return HttpReply(reply.status, body, {name.lower(): value for name, value in reply.headers.items()})

    async def aclose(self) -> None:
        """Close every kept connection."""
        sessions, self._sessions = self._sessions, {}
        for session in sessions.values():
            await session.close()

    def _route(self, url: str) -> tuple[aiohttp.ClientSession, str]:
        """The session whose connections lead there, and the URL it understands."""
        if url.startswith(_UNIX):
            socket, route = split_unix(url)
            return self._session(socket), "http://localhost" + route
        return self._session(""), url

    def _session(self, socket: str) -> aiohttp.ClientSession:
        """Of one Unix socket, or of all TCP addresses."""
        if socket not in self._sessions:
            self._sessions[socket] = aiohttp.ClientSession(
                connector=_connector(socket),
                timeout=aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None, sock_read=None),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._sessions[socket]


def _connector(socket: str) -> aiohttp.BaseConnector:
    if socket:
        return aiohttp.UnixConnector(socket, limit=0, keepalive_timeout=_KEEP_IDLE_S)
    return aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_IDLE_S)


def _bearer(token_file: str) -> dict[str, str]:
    """The header. Without a file, as after the end of its stack, the server says what it thinks of a call without it.

    Read anew each time: a stack that was brought up again has another one.
    """
    try:
        return {"Authorization": f"Bearer {Path(token_file).read_text('ascii').strip()}"}
    except (OSError, UnicodeError):
        return {}


def _word(error: BaseException) -> str:
    kinds = [type(cause) for cause in _causes(error)]
    if TimeoutError in kinds:
        return "timeout"
    if FileNotFoundError in kinds:
        return "absent"
    return "refused" if ConnectionRefusedError in kinds else "broken"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error and all that led to it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
