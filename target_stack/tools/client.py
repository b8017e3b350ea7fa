"""A client of the tools that always comes back within its time, and says whether the call may have happened.

    async with open_tools("http://127.0.0.1:9000", token) as tools:
        try:
            done = await tools.call("open_ticket", {"order": "B-1001", "subject": "?"}, within_s=2.0, key="task-7:3")
        except ToolRefused as no: ...      # the tools said no: nothing was done, and asking again changes nothing
        except NotStarted: ...             # it never got there: nothing was done, ask again
        except MaybeDone: ...              # the reply was lost: ask again WITH THE SAME KEY, or look first

It speaks MCP's stateless revision, where every call stands for itself: a server that died and came back needs no new
session, and a frozen one costs no more than `within_s`. The official SDK's client hides in its error whether the
request had left, and its whole context ends with the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from target_stack.tools.wire import DEADLINE, KEY, MCP_PATH, REPLAYED, NotMcp, request_body, request_headers, result_of

CONNECT_S = 0.5
_KEEP_IDLE_S = 4.0  # below uvicorn's five seconds, so that no connection is used as it closes
_NOT_READ = (400, 401, 403, 404, 405, 406, 413, 415, 429)  # statuses of a server that did not begin on the request


class ToolCallFailed(Exception):
    """No result; the kinds below say what that means. `reason` is one word, `retry_after` the header of that name."""

    def __init__(self, reason: str, message: str = "", retry_after: str | None = None) -> None:
        """Keep why."""
        super().__init__(message or reason)
        self.reason = reason
        self.retry_after = retry_after


class ToolRefused(ToolCallFailed):
    """The tools answered no. `reason` is the code of the refusal (see refusal.py), `argument` names the culprit."""

    def __init__(self, reason: str, message: str, argument: str | None) -> None:
        """Keep the answer."""
        super().__init__(reason, message)
        self.argument = argument

    def to_json(self) -> dict[str, Any]:
        """As the tools said it."""
        return {"error": {"code": self.reason, "message": str(self), "argument": self.argument}}


class NotStarted(ToolCallFailed):
    """The request did not get there, or was turned away unread: `unreachable` or `status_4xx`."""


class MaybeDone(ToolCallFailed):
    """It may have been done: `timeout`, `lost` (the connection broke), `status_5xx` or `malformed_reply`."""


@dataclass(frozen=True)
class ToolResult:
    """What a tool gave. `replayed`: an earlier call with this key had done it."""

    value: Mapping[str, Any]
    replayed: bool


class ToolClient:
    """One agent's way to the tools; any number of calls at once."""

    def __init__(self, url: str, token: str, session: aiohttp.ClientSession) -> None:
        """`url` is the base address, `http://host:port`. The caller closes the session."""
        self._url = url.rstrip("/") + MCP_PATH
        self._token = token
        self._session = session

    async def call(
        self,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        within_s: float,
        key: str | None = None,
        traceparent: str | None = None,
        tracestate: str | None = None,
    ) -> ToolResult:
        """Call a tool; one that acts needs a `key`, unique to the intent. Raises ToolRefused, NotStarted, MaybeDone."""
        said = (("traceparent", traceparent), ("tracestate", tracestate))
        trace = {name: value for name, value in said if value is not None}
        meta = trace if key is None else {KEY: key, **trace}
        params = {"name": tool, "arguments": dict(arguments)}
        result = await self._ask("tools/call", tool, request_body("tools/call", params, meta), within_s, trace)
        value = result.get("structuredContent")
        if not isinstance(value, dict):
            raise MaybeDone("malformed_reply", "the result has no structured content")
        if result.get("isError"):
            told = value.get("error") or {}
            raise ToolRefused(str(told.get("code")), str(told.get("message")), told.get("argument"))
        return ToolResult(value, bool((result.get("_meta") or {}).get(REPLAYED)))

    async def list_tools(self, *, within_s: float) -> list[dict[str, Any]]:
        """The tools that this agent may call, with their schemas. Raises NotStarted or MaybeDone."""
        result = await self._ask("tools/list", None, request_body("tools/list", {}), within_s, {})
        return list(result.get("tools") or ())

    async def _ask(
        self, method: str, name: str | None, body: bytes, within_s: float, trace: Mapping[str, str]
    ) -> dict[str, Any]:
        headers = {**request_headers(method, name, self._token), DEADLINE: str(max(1, int(within_s * 1000))), **trace}
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=min(CONNECT_S, within_s))
        try:
            async with (
                asyncio.timeout(within_s),
                self._session.post(self._url, data=body, headers=headers, timeout=timeout) as reply,
            ):
                return _read(reply.status, reply.headers.get("Retry-After"), await reply.read())
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as problem:
            raise NotStarted("unreachable", str(problem)) from problem
        except TimeoutError as problem:
            raise MaybeDone("timeout", f"no answer within {within_s:g} s") from problem
        except (aiohttp.ClientError, OSError) as problem:
            raise MaybeDone("lost", f"the connection broke: {problem!r}") from problem


def _read(status: int, retry_after: str | None, body: bytes) -> dict[str, Any]:
    if status != 200:
        kind = NotStarted if status in _NOT_READ else MaybeDone
        raise kind(f"status_{status}", body[:200].decode(errors="replace"), retry_after)
    try:
        return result_of(body)
    except NotMcp as problem:
        raise MaybeDone("malformed_reply", str(problem)) from problem


@asynccontextmanager
async def open_tools(url: str, token: str) -> AsyncIterator[ToolClient]:
    """A client with a session of its own."""
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_IDLE_S)
    async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:
        yield ToolClient(url, token, session)
