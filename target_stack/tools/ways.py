"""Two ways to put a request to MCP servers: each standing for itself, or within a session.

    Stateless    revision 2026-07-28      one POST, nothing to lose
    InSession    revision 2025-11-25      initialize ─► mcp-session-id ─► requests with it ─► 404: it is gone

A client that finds its session gone opens another and asks once more (`renew`), because the request was not begun.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from target_stack.tools.exchange import Exchange
from target_stack.tools.outcomes import NotStarted, ToolCallFailed
from target_stack.tools.wire import (
    INITIALIZED,
    SESSION,
    initialize_body,
    request_body,
    request_headers,
    session_body,
    session_headers,
)

_GONE = "status_404"


class Way(Protocol):
    """How a request gets there."""

    async def ask(
        self, method: str, params: Mapping[str, Any], meta: Mapping[str, Any], trace: Mapping[str, str], within_s: float
    ) -> dict[str, Any]:
        """The result. `meta` travels in the request, `trace` in its headers. Raises NotStarted or MaybeDone."""
        ...


class Stateless:
    """Each request stands for itself: a server that died and came back needs no new session."""

    def __init__(self, exchange: Exchange, token: str) -> None:
        self._exchange = exchange
        self._token = token

    async def ask(
        self, method: str, params: Mapping[str, Any], meta: Mapping[str, Any], trace: Mapping[str, str], within_s: float
    ) -> dict[str, Any]:
        """See Way."""
        headers = {**request_headers(method, params.get("name"), self._token), **trace}
        return (await self._exchange.post(request_body(method, params, meta), headers, within_s)).result


class InSession:
    """All requests in one session, which the first of them opens. Without `renew` it is never opened again."""

    def __init__(self, exchange: Exchange, token: str, *, renew: bool) -> None:
        self._exchange = exchange
        self._token = token
        self._renew = renew
        self._id: str | None = None
        self._opening = asyncio.Lock()

    async def ask(
        self, method: str, params: Mapping[str, Any], meta: Mapping[str, Any], trace: Mapping[str, str], within_s: float
    ) -> dict[str, Any]:
        """See Way."""
        clock = asyncio.get_running_loop().time
        until, body = clock() + within_s, session_body(method, params, meta)
        for first in (True, False):
            session = await self._session(until - clock())
            headers = {**session_headers(self._token, session), **trace}
            try:
                return (await self._exchange.post(body, headers, until - clock())).result
            except NotStarted as problem:
                if problem.reason != _GONE or not (first and self._renew):
                    raise
                self._forget(session)
        raise AssertionError("the second try returns or raises")

    def _forget(self, session: str) -> None:
        """Unless somebody else has opened another meanwhile."""
        if self._id == session:
            self._id = None

    async def _session(self, within_s: float) -> str:
        """The id of the session, opened now if there is none. Raises NotStarted: whatever fails here, no call began."""
        try:
            async with asyncio.timeout(within_s), self._opening:
                self._id = self._id or await self._open(within_s)
                return self._id
        except TimeoutError as problem:
            raise NotStarted("timeout", "no session in time") from problem
        except ToolCallFailed as problem:
            raise NotStarted(problem.reason, f"no session: {problem}") from problem

    async def _open(self, within_s: float) -> str:
        answered = await self._exchange.post(initialize_body(), session_headers(self._token, None), within_s)
        session = answered.headers.get(SESSION, "")
        await self._exchange.post(INITIALIZED, session_headers(self._token, session), within_s)
        return session
