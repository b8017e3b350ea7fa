"""One JSON-RPC message to the tools and what came back, always within its time, sorted by what may have happened."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

from target_stack.tools.outcomes import MaybeDone, NotStarted
from target_stack.tools.wire import DEADLINE, MCP_PATH, NotMcp, result_of

CONNECT_S = 0.5
_NOT_READ = (400, 401, 403, 404, 405, 406, 413, 415, 429)  # statuses of a server that did not begin on the request
_TAKEN = 202  # of a notification


@dataclass(frozen=True)
class Answered:
    """A result and the headers that it came with; a notification has no result."""

    result: dict[str, Any]
    headers: Mapping[str, str]


class Exchange:
    """The way to one server. `url` is its base address, `http://host:port`; the caller closes the session."""

    def __init__(self, url: str, session: aiohttp.ClientSession) -> None:
        self._url = url.rstrip("/") + MCP_PATH
        self._session = session

    async def post(self, body: bytes, headers: Mapping[str, str], within_s: float) -> Answered:
        """Send, and read the answer. Raises NotStarted or MaybeDone."""
        whole = {**headers, DEADLINE: str(max(1, int(within_s * 1000)))}
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=min(CONNECT_S, within_s))
        try:
            async with (
                asyncio.timeout(within_s),
                self._session.post(self._url, data=body, headers=whole, timeout=timeout) as reply,
            ):
                return Answered(_read(reply, await reply.read()), reply.headers)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as problem:
            raise NotStarted("unreachable", str(problem)) from problem
        except TimeoutError as problem:
            raise MaybeDone("timeout", f"no answer within {within_s:g} s") from problem
        except (aiohttp.ClientError, OSError) as problem:
            raise MaybeDone("lost", f"the connection broke: {problem!r}") from problem


def _read(reply: aiohttp.ClientResponse, body: bytes) -> dict[str, Any]:
    if reply.status == _TAKEN:
        return {}
    if reply.status != 200:
        kind = NotStarted if reply.status in _NOT_READ else MaybeDone
        told = body[:200].decode(errors="replace")
        raise kind(f"status_{reply.status}", told, reply.headers.get("Retry-After"))
    try:
        return result_of(body)
    except NotMcp as problem:
        raise MaybeDone("malformed_reply", str(problem)) from problem
