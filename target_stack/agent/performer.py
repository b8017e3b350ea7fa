"""Carries commands out, each within its limit: models through the front door, tools over MCP in the agent's own name.

A model call is not tried again here, because the front door has done so already: retries at one layer only. Tries of
tool calls are paid from a budget of the agent's own, so an outage of the tools is never answered with a flood.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

import aiohttp

from target_stack.agent.task import AskModel, CallTool, Command, Decide, Event, Observed, Refused, Task, Unanswered
from target_stack.gateway.policies.deadline import HEADER
from target_stack.gateway.policies.retry_budget import RetryBudgetPolicy
from target_stack.tools.client import ToolClient
from target_stack.tools.outcomes import MaybeDone, NotStarted, ToolRefused

_PATHS = {"chat": "/v1/chat/completions", "rag": "/v1/rag"}
_NO_ANSWER = ("canned", "no_retrieval")


class RealPerformer:
    """One agent's hands. `tools` carries its identity; `rng` draws span ids."""

    def __init__(
        self,
        *,
        gateway: str,
        model: str,
        session: aiohttp.ClientSession,
        tools: ToolClient,
        budget: RetryBudgetPolicy,
        most_tries: int,
        rng: random.Random,
    ) -> None:
        """`gateway` is the base address of the front door; the caller closes session and client."""
        self._gateway, self._model, self._session = gateway, model, session
        self._tools, self._budget, self._most_tries, self._rng = tools, budget, most_tries, rng

    async def perform(self, command: Command, task: Task, limit_s: float) -> Event:
        """See Performer."""
        if isinstance(command, Decide):
            return Observed(command.result)
        if isinstance(command, AskModel):
            return await self._ask_model(command, task, min(limit_s, command.limit_s))
        if isinstance(command, CallTool):
            return self._paid(await self._call_tool(command, task, min(limit_s, command.limit_s)), task)
        raise TypeError(f"{type(command).__name__} is not performed but stored")

    def _paid(self, event: Event, task: Task) -> Event:
        """An answer to a first try earns, another try is paid for. A tool call counts as a call without work."""
        if not isinstance(event, Unanswered) and task.attempt == 1:
            self._budget.succeeded(0)
        if not isinstance(event, Unanswered) or task.attempt >= self._most_tries or self._budget.take_retry(0):
            return event
        return Unanswered(event.reason, event.lost, affordable=False)

    def _traceparent(self, task: Task) -> str:
        return f"00-{task.trace_id}-{self._rng.getrandbits(64) or 1:016x}-01"

    async def _call_tool(self, command: CallTool, task: Task, limit_s: float) -> Event:
        try:
            given = await self._tools.call(
                command.tool,
                command.arguments,
                within_s=limit_s,
                key=command.key,
                traceparent=self._traceparent(task),
            )
        except ToolRefused as refused:
            return Refused(refused.reason)
        except NotStarted as problem:
            return Unanswered(problem.reason, lost=False)
        except MaybeDone as problem:
            return Unanswered(problem.reason, lost=True)
        return Observed(given.value)

    async def _ask_model(self, command: AskModel, task: Task, limit_s: float) -> Event:
        body = {"model": self._model, "messages": list(command.messages), "max_tokens": command.max_tokens}
        headers = {HEADER: str(max(1, int(limit_s * 1000))), "traceparent": self._traceparent(task)}
        url = self._gateway + _PATHS[command.route]
        try:
            async with asyncio.timeout(limit_s), self._session.post(url, json=body, headers=headers) as reply:
                return _heard(reply.status, reply.headers.get("x-degraded", ""), await reply.json(content_type=None))
        except TimeoutError:
            return Unanswered("timeout", lost=True)
        except (aiohttp.ClientError, OSError):
            return Unanswered("unreachable", lost=True)
        except ValueError:
            return Unanswered("malformed_reply", lost=True)


def _heard(status: int, degraded: str, body: Any) -> Event:
    """What a reply says. A fixed text, or one without the documents it was asked from, answers nothing here."""
    if status != 200:
        return Unanswered(f"status_{status}", lost=status >= 500)
    lacking = [word for word in degraded.split(",") if word in _NO_ANSWER]
    if lacking:
        return Unanswered(lacking[0], lost=False)
    try:
        text = body["choices"][0]["message"]["content"]
    except (LookupError, TypeError):
        return Unanswered("malformed_reply", lost=False)
    return Observed({"text": text}) if isinstance(text, str) and text.strip() else Unanswered("empty", lost=False)
