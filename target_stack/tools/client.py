"""A client of the tools that always comes back within its time, and says whether the call may have happened.

    async with open_tools("http://127.0.0.1:9000", token) as tools:
        try:
            done = await tools.call("open_ticket", {"order": "B-1001", "subject": "?"}, within_s=2.0, key="task-7:3")
        except ToolRefused as no: ...      # the tools said no: nothing was done, and asking again changes nothing
        except NotStarted: ...             # it never got there: nothing was done, ask again
        except MaybeDone: ...              # the reply was lost: ask again WITH THE SAME KEY, or look first

By default it speaks MCP's stateless revision, where a frozen server costs no more than `within_s`. The official SDK's
client hides in its error whether the request had left, and its whole context ends with the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from target_stack.tools.exchange import Exchange
from target_stack.tools.listing import Listing
from target_stack.tools.outcomes import MaybeDone, ToolCallFailed, ToolRefused, ToolResult
from target_stack.tools.rules import ToolRules
from target_stack.tools.ways import InSession, Stateless, Way
from target_stack.tools.wire import KEY, REPLAYED

_KEEP_IDLE_S = 4.0  # below uvicorn's five seconds, so that no connection is used as it closes


class ToolClient:
    """One agent's way to the tools; any number of calls at once."""

    def __init__(self, url: str, token: str, session: aiohttp.ClientSession, rules: ToolRules) -> None:
        """`url` is the base address, `http://host:port`. The caller closes the session."""
        exchange = Exchange(url, session)
        in_session = rules.session != "none"
        self._way: Way = (
            InSession(exchange, token, renew=rules.session == "renewed") if in_session else Stateless(exchange, token)
        )
        self._listing = Listing(self._tools) if rules.results == "checked" else None

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
        clock = asyncio.get_running_loop().time
        until = clock() + within_s
        said = (("traceparent", traceparent), ("tracestate", tracestate))
        trace = {name: value for name, value in said if value is not None}
        meta = trace if key is None else {KEY: key, **trace}
        params = {"name": tool, "arguments": dict(arguments)}
        result = await self._way.ask("tools/call", params, meta, trace, within_s)
        value = _value_of(result)
        if self._listing:
            await _check(self._listing, tool, value, until - clock())
        return ToolResult(value, bool((result.get("_meta") or {}).get(REPLAYED)))

    async def list_tools(self, *, within_s: float) -> list[dict[str, Any]]:
        """The tools that this agent may call, with their schemas. Raises NotStarted or MaybeDone."""
        return await self._tools(within_s)

    async def _tools(self, within_s: float) -> list[dict[str, Any]]:
        result = await self._way.ask("tools/list", {}, {}, {}, within_s)
        return list(result.get("tools") or ())


def _value_of(result: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the tool gave. Raises ToolRefused for a refusal, MaybeDone for a failure and for what is no result."""
    value = result.get("structuredContent")
    told = value.get("error") if isinstance(value, dict) else None
    if result.get("isError") and not isinstance(told, dict):
        raise MaybeDone("tool_error", str(result.get("content"))[:200])
    if result.get("isError") and isinstance(told, dict):
        raise ToolRefused(str(told.get("code")), str(told.get("message")), told.get("argument"))
    if not isinstance(value, dict):
        raise MaybeDone("malformed_reply", "the result has no structured content")
    return value


async def _check(listing: Listing, tool: str, value: Mapping[str, Any], within_s: float) -> None:
    """Raises MaybeDone for what is no result of the tool, and where that cannot be told: the call was answered."""
    try:
        wrong = await listing.misfit(tool, value, within_s)
    except ToolCallFailed as problem:
        raise MaybeDone(problem.reason, f"the result could not be checked: {problem}") from problem
    if wrong:
        raise MaybeDone("wrong_schema", f"{tool} gave what is no result of it: {wrong}")


@asynccontextmanager
async def open_tools(url: str, token: str, rules: ToolRules | None = None) -> AsyncIterator[ToolClient]:
    """A client with a session of its own."""
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_IDLE_S)
    async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:
        yield ToolClient(url, token, session, rules or ToolRules())
