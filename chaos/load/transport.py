"""The wire of the load driver: one attempt over aiohttp, told to a stopwatch as it happens.

A session of its own per load, without a connection limit: an open loop must never wait for a free connection. Idle
connections are let go before any server does (vLLM's uvicorn after 5 s), or the driver would fail requests on a
closing connection and blame the stack.
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from types import TracebackType
from typing import Protocol, Self

import aiohttp
from aiohttp.http_exceptions import HttpProcessingError

from chaos.load.schedule import HttpRequest
from chaos.load.stopwatch import Stopwatch

_KEEP_IDLE_S = 2.0
_OURS = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL)


class Transport(Protocol):
    """Whatever carries a request."""

    async def exchange(self, request: HttpRequest, watch: Stopwatch) -> None:
        """Send, and tell the stopwatch all that comes back, its end included. Raises nothing but CancelledError."""
        ...


class HttpTransport:
    """Requests to one front door. An async context manager; `now_s` gives seconds since the run began."""

    def __init__(self, front_door: str, now_s: Callable[[], float]) -> None:
        """`front_door` is `http://host:port`."""
        self._front_door = front_door.rstrip("/")
        self._now_s = now_s
        self._session: aiohttp.ClientSession

    async def __aenter__(self) -> Self:
        """Open the session; connections come with the first requests."""
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_IDLE_S),
            timeout=aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None, sock_read=None),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"user-agent": "brownout-load"},
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close every connection."""
        await self._session.close()

    async def exchange(self, request: HttpRequest, watch: Stopwatch) -> None:
        """As `Transport.exchange` says."""
        try:
            await self._exchange(request, watch)
        except (aiohttp.ClientError, HttpProcessingError, OSError) as error:
            trouble, ours = describe(error)
            (watch.given_up if ours else watch.broken)(self._now_s(), trouble)

    async def _exchange(self, request: HttpRequest, watch: Stopwatch) -> None:
        call = self._session.request(
            request.method,
            self._front_door + request.path,
            data=request.body,
            headers=request.headers,
            allow_redirects=False,
        )
        async with call as reply:
            watch.reply(self._now_s(), reply.status, reply.headers)
            async for piece in reply.content.iter_any():
                watch.chunk(self._now_s(), piece)
            watch.ended(self._now_s())


def describe(error: Exception) -> tuple[str, bool]:
    """Short name of a connection trouble, and whether it is our own side's (out of descriptors, ports or memory)."""
    number = error.errno if isinstance(error, OSError) else None
    if number in _OURS:
        return f"harness_{errno.errorcode[number].lower()}", True
    if number == errno.ECONNREFUSED:
        return "connect_refused", False
    if isinstance(error, aiohttp.ClientConnectorError):
        return "connect_failed", False
    if isinstance(error, aiohttp.ClientPayloadError):
        return "cut", False
    if isinstance(error, aiohttp.ClientConnectionError | OSError):
        return "reset", False
    return "protocol_error", False
