"""Calls to tools and other services, made again where that is safe, in time, and paid from the one budget."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from target_stack.gateway.call import Call
from target_stack.gateway.dependency import Dependency, DependencyDown
from target_stack.gateway.policies.backoff import half, pause_s
from target_stack.gateway.policies.retry_budget import RetryBudgetPolicy
from target_stack.gateway.policies.retry_classes import TriesSoFar, may_repeat
from target_stack.gateway.policies.settings import PolicySettings
from target_stack.gateway.telemetry import Telemetry

T = TypeVar("T")


class Repeater:
    """Shared by all routes that forward a call."""

    def __init__(self, settings: PolicySettings, budget: RetryBudgetPolicy, telemetry: Telemetry) -> None:
        self._settings = settings
        self._budget = budget
        self._telemetry = telemetry

    async def call(
        self,
        dependency: Dependency,
        call: Call,
        work: Callable[[Call], Awaitable[T]],
        *,
        idempotent: bool,
        tokens: int = 0,
    ) -> T:
        """Do the work before the call's deadline, again when it failed and may be repeated. `idempotent`: it only
        reads or carries an idempotency key; `tokens` is what one try costs. Raises DependencyDown.
        """
        made = 0
        while True:
            try:
                result = await dependency.call(call, work, attempt=made + 1)
            except DependencyDown as down:
                made += 1
                if not await self._again(down, call, made, idempotent=idempotent, tokens=tokens):
                    raise
            else:
                if not made and not call.resend:
                    self._budget.succeeded(tokens)
                return result

    async def _again(self, down: DependencyDown, call: Call, made: int, *, idempotent: bool, tokens: int) -> bool:
        clock, rules = self._telemetry.clock, self._settings
        asked_s = min(down.retry_after_s, rules.backoff.asked_most_s)
        pause = pause_s(rules.backoff, made, self._telemetry.rng, asked_s)
        so_far = TriesSoFar(made, seen=False, remaining_s=call.deadline.remaining(clock()) - pause)
        if not may_repeat(rules.retry, down.reason, so_far, rules.attempts, idempotent=idempotent):
            return False
        self._telemetry.metrics.retry_pauses.add(half(rules.backoff, made, pause, asked_s))
        await asyncio.sleep(pause)
        return self._budget.take_retry(tokens)
