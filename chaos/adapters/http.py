"""Short HTTP calls over TCP and Unix sockets; trouble on the way is part of the reply, never an exception.

The `error` of a reply without status begins with one word that a caller may decide on:

    absent    there is no such Unix socket
    refused   nobody listens there
    timeout   no whole reply in time
    broken    anything else on the wire
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx

from chaos.ports import HttpReply

_UNIX = "unix://"


def split_unix(url: str) -> tuple[str, str]:
    """`unix:///run/x.sock:/status` as socket path and route. Raises ValueError."""
    path, colon, route = url.removeprefix(_UNIX).partition(":/")
    if not url.startswith(_UNIX) or not colon:
        raise ValueError(f"{url!r} is not unix:///path/to.sock:/route")
    return path, "/" + route


class HttpxCalls:
    """The `Http` port. Connections are kept and reused, so one value belongs to one event loop; `aclose` ends them."""

    def __init__(self) -> None:
        """Nothing is opened before the first call."""
        self._clients: dict[str, httpx.AsyncClient] = {}

    async def call(self, method: str, url: str, json: Any = None, *, timeout_s: float = 2.0) -> HttpReply:
        """One call; `timeout_s` bounds it from connect to the last byte."""
        client, url = self._route(url)
        try:
            async with asyncio.timeout(timeout_s):
                reply = await client.request(method, url, json=json, timeout=timeout_s)
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            return HttpReply(status=0, body="", headers={}, error=f"{_word(error)}: {error or type(error).__name__}")
        return HttpReply(status=reply.status_code, body=reply.text, headers=dict(reply.headers))

    async def aclose(self) -> None:
        """Close every kept connection."""
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.aclose()

    def _route(self, url: str) -> tuple[httpx.AsyncClient, str]:
        """The client whose connections lead there, and the URL it understands."""
        if url.startswith(_UNIX):
            socket, route = split_unix(url)
            return self._client(socket), "http://localhost" + route
        return self._client(url.partition(":")[0]), url

    def _client(self, key: str) -> httpx.AsyncClient:
        if key not in self._clients:
            # Loading the certificate store takes longer than all control calls together; only https needs it.
            # Proxy settings in the environment must not reroute calls to this machine.
            transport = httpx.AsyncHTTPTransport(
                verify=key == "https", trust_env=False, uds=key if key.startswith("/") else None
            )
            self._clients[key] = httpx.AsyncClient(transport=transport, trust_env=False)
        return self._clients[key]


def _word(error: BaseException) -> str:
    if isinstance(error, (httpx.TimeoutException, TimeoutError)):
        return "timeout"
    kinds = [type(cause) for cause in _causes(error)]
    if FileNotFoundError in kinds:
        return "absent"
    return "refused" if ConnectionRefusedError in kinds else "broken"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error and all that led to it, also inside groups."""
    while error is not None:
        yield error
        if isinstance(error, BaseExceptionGroup):
            for inner in error.exceptions:
                yield from _causes(inner)
        error = error.__cause__ or error.__context__
