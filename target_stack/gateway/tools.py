"""Tools for the gateway's clients: an MCP call under the gateway's own identity, guarded, and made again when its
answer was lost.

Every call carries an idempotency key, the client's or one of our own, so making it again is always safe.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from itertools import count
from typing import Any

from target_stack.gateway.call import Call
from target_stack.gateway.dependency import CallFailed, Dependency
from target_stack.gateway.policies.backoff import asked_pause_s
from target_stack.gateway.policies.settings import PolicySettings
from target_stack.gateway.policies.tool_key import key_of
from target_stack.gateway.repeat import Repeater
from target_stack.gateway.telemetry import Telemetry
from target_stack.tools.client import ToolClient
from target_stack.tools.outcomes import ToolCallFailed, ToolRefused

STATUSES: Mapping[str, int] = {
    "unauthenticated": 401,
    "permission_denied": 403,
    "unknown_tool": 404,
    "not_found": 404,
    "conflict": 409,
    "deadline_exceeded": 504,
}
"""Refusals of the tools as HTTP statuses; the others are 400."""


class GatewayTools:
    """All tools as one dependency."""

    def __init__(
        self,
        dependency: Dependency,
        client: ToolClient,
        repeater: Repeater,
        settings: PolicySettings,
        telemetry: Telemetry,
    ) -> None:
        self.dependency = dependency
        self._client = client
        self._repeater = repeater
        self._settings = settings
        self._telemetry = telemetry

    async def use(self, call: Call, tool: str, arguments: dict[str, Any], client_key: str | None) -> tuple[int, Any]:
        """Status and JSON of the answer. Raises DependencyDown."""
        request_key, tries = client_key or f"{call.trace_id}-{call.trace.parent_id}", count(1)

        def ask(hop: Call) -> Awaitable[tuple[int, Any]]:
            return self._ask(hop, tool, arguments, key_of(self._settings.tool_key, request_key, next(tries)))

        async def one_try(hop: Call) -> tuple[int, Any]:
            for _ in range(self._settings.retry.hop_resends):  # what a client library does unasked: see EngineClient
                try:
                    return await ask(hop)
                except CallFailed:
                    self.dependency.resent(hop)
            return await ask(hop)

        return await self._repeater.call(self.dependency, call, one_try, idempotent=True)

    async def _ask(self, call: Call, tool: str, arguments: dict[str, Any], key: str) -> tuple[int, Any]:
        now = self._telemetry.clock()
        within_s = max(0.001, min(self.dependency.limit_s, call.deadline.remaining(now)))
        trace = call.place().headers()
        try:
            done = await self._client.call(tool, arguments, within_s=within_s, key=key, **trace)
        except ToolRefused as refused:
            return STATUSES.get(refused.reason, 400), refused.to_json()
        except ToolCallFailed as failed:
            raise CallFailed(failed.reason, asked_pause_s(failed.retry_after)) from failed
        return 200, done.value
