"""Get one answer out of a pool of replicas: try, judge, and try another while that is allowed and paid for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from types import TracebackType
from typing import Any, Self

from target_stack.gateway.call import Call
from target_stack.gateway.engine_client import EngineStream
from target_stack.gateway.hedging import first_to_answer
from target_stack.gateway.hops import Hop
from target_stack.gateway.policies.backoff import half, pause_s
from target_stack.gateway.policies.breaker import Permit
from target_stack.gateway.policies.hedge import HedgeDelay
from target_stack.gateway.policies.limiter import LimiterPolicy
from target_stack.gateway.policies.retry_budget import RetryBudgetPolicy
from target_stack.gateway.policies.retry_classes import TriesSoFar, may_retry
from target_stack.gateway.policies.settings import PolicySettings
from target_stack.gateway.prefill import NO_PREFILL, CallKind, ComputedThere, NoPrompt, Prompts
from target_stack.gateway.replicas import Replica, ReplicaPool
from target_stack.gateway.requests import ChatRequest
from target_stack.gateway.retries import EngineFailure
from target_stack.gateway.sse import Frame
from target_stack.gateway.telemetry import Telemetry

Sleep = Callable[[float], Awaitable[None]]
Picked = tuple[Replica, Permit]
_COMPUTED_THERE = ComputedThere()


class NoAnswer(Exception):
    """No replica of the pool gave a first token. `reason` is the kind of the last failure, or `no_replica`."""

    def __init__(self, reason: str) -> None:
        """Keep why."""
        super().__init__(reason)
        self.reason = reason


class LiveAnswer:
    """An engine's answer from its first token on. Close it always: that frees the replica's slot and the engine's
    work.
    """

    def __init__(
        self, pool: ReplicaPool, replica: Replica, stream: EngineStream, hop: Hop, degraded: tuple[str, ...]
    ) -> None:
        self._pool = pool
        self._replica = replica
        self._stream = stream
        self._hop = hop
        self._collected: list[Frame] | None = None
        self.served_by = replica.name
        self.degraded = degraded

    async def frames(self) -> AsyncIterator[list[Frame]]:
        """All frames, in the batches in which they came. Raises EngineFailure when the answer breaks."""
        if self._collected is not None:
            yield self._collected
            return
        yield self._stream.head
        try:
            async for frames in self._stream.rest():
                yield frames
        except EngineFailure as failure:
            self._pool.broke(self._replica, failure)
            self._end(failure.kind)
            raise

    async def collect(self) -> None:
        """Read to the end now, while a broken answer can still be replaced by another. Raises EngineFailure."""
        collected: list[Frame] = []
        async for frames in self.frames():
            collected += frames
        self._collected = collected

    async def close(self) -> None:
        """See the class."""
        self._replica.in_flight -= 1
        self._end("ok" if self._stream.whole else "cancelled")
        await self._stream.finish()

    def _end(self, outcome: str) -> None:
        self._hop.end(outcome, self._stream.prompt_tokens, self._stream.output_tokens)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class Dispatcher:
    """Tries on one pool. `attempts` counts the first try too; `limiter` learns from the answers."""

    def __init__(
        self,
        pool: ReplicaPool,
        settings: PolicySettings,
        telemetry: Telemetry,
        *,
        attempts: int,
        budget: RetryBudgetPolicy,
        limiter: LimiterPolicy | None,
        sleep: Sleep,
        prompts: Prompts = _COMPUTED_THERE,
    ) -> None:
        self._pool = pool
        self._settings = settings
        self._telemetry = telemetry
        self._attempts = attempts
        self._budget = budget
        self._limiter = limiter
        self._sleep = sleep
        self._prompts = prompts
        self._hedge = HedgeDelay(settings.hedge)

    async def answer(self, ask: ChatRequest, call: Call) -> LiveAnswer:
        """An answer with its first token; the whole of it when no stream was asked for.

        Raises NoAnswer, and EngineFailure (rejected) when the request itself is at fault.
        """
        tried: list[Picked] = []
        picked = self._pool.pick(self._telemetry.clock())
        if picked is None:
            raise NoAnswer("no_replica")
        while True:
            kind: CallKind = "retry" if tried else "first"
            tried.append(picked)
            try:
                return await self._try(kind, ask, call, tried)
            except EngineFailure as failure:
                picked = await self._next(failure, ask, call, tried)
                if picked is None and failure.kind == "rejected":
                    raise
                if picked is None:
                    raise NoAnswer(failure.kind) from failure

    async def _next(self, failure: EngineFailure, ask: ChatRequest, call: Call, tried: list[Picked]) -> Picked | None:
        """Whom to try next, after the pause and paid for; None when this failure is the last word."""
        remaining_s = call.deadline.remaining(self._telemetry.clock())
        so_far = TriesSoFar(len(tried), seen=False, remaining_s=remaining_s)
        if not may_retry(self._settings.retry, failure.kind, so_far, self._attempts):
            return None
        pause = pause_s(self._settings.backoff, len(tried), self._telemetry.rng)
        self._telemetry.metrics.retry_pauses.add(half(self._settings.backoff, len(tried), pause))
        await self._sleep(pause)
        return self._paid(self._pick(tried), ask)

    def _pick(self, tried: list[Picked]) -> Picked | None:
        return self._pool.pick(self._telemetry.clock(), {replica.name for replica, _ in tried})

    def _paid(self, picked: Picked | None, ask: ChatRequest) -> Picked | None:
        """A retry is paid when it is made, so that one which finds no replica costs nothing."""
        if picked is not None and not self._budget.take_retry(ask.work()):
            picked[1].cancel()
            return None
        return picked

    async def _try(self, kind: CallKind, ask: ChatRequest, call: Call, tried: list[Picked]) -> LiveAnswer:
        first, hedge_after_s = self._start(tried[-1], ask, call, kind), self._hedge.delay_s()
        try:
            if hedge_after_s is None or call.resend:
                answer = await first
            else:
                answer = await first_to_answer(
                    first, hedge_after_s, lambda: self._hedged(ask, call, tried), LiveAnswer.close
                )
        finally:
            for _, permit in tried:
                permit.cancel()  # only of a try that was cancelled before its first step
        if not ask.stream:
            try:
                await answer.collect()
            except BaseException:
                await answer.close()
                raise
        return answer

    def _hedged(self, ask: ChatRequest, call: Call, tried: list[Picked]) -> Coroutine[Any, Any, LiveAnswer] | None:
        """A second try beside one that is late, at a replica that has not been asked; None when that cannot be."""
        picked = self._pick(tried)
        if picked is not None and picked[0] in [replica for replica, _ in tried]:
            picked[1].cancel()
            return None
        picked = self._paid(picked, ask)
        if picked is None:
            return None
        tried.append(picked)
        return self._start(picked, ask, call, "hedge")

    async def _start(self, picked: Picked, ask: ChatRequest, call: Call, kind: CallKind) -> LiveAnswer:
        replica, permit = picked
        try:
            prompt = await self._prompts.ready(ask, call, kind)
        except NoPrompt:
            raise NoAnswer(NO_PREFILL) from None
        started = self._telemetry.clock()
        self._count(replica, kind)
        replica.in_flight += 1
        call.record.attempts += 1
        hop = self._telemetry.hop(call.trace, self._pool.dependency, replica.name, call.record.attempts)
        try:
            stream = await replica.client.start(
                {**ask.upstream(replica.client.model), **prompt.said},
                call.part_of(hop).headers(started),
                prompt.limits(call.deadline.budget(started, self._settings.deadline), started),
                choices=ask.choices,
                on_progress=lambda: self._pool.progress(replica),
                on_resend=lambda: self._resent(replica, hop),
            )
        except BaseException as problem:
            replica.in_flight -= 1
            hop.end(problem.kind if isinstance(problem, EngineFailure) else "cancelled")
            counts_as = prompt.failed(problem, self._telemetry.clock())
            self._settle_failure(replica, permit, counts_as)
            if counts_as is problem:
                raise
            raise counts_as from problem
        prompt.arrived(self._telemetry.clock())
        self._settle_success(permit, self._telemetry.clock() - started)
        if kind == "first" and not call.resend:
            self._budget.succeeded(ask.work())
        return LiveAnswer(self._pool, replica, stream, hop, prompt.degraded)

    def _count(self, replica: Replica, kind: CallKind) -> None:
        self._telemetry.metrics.upstream_calls.add(self._pool.dependency, replica.name, kind)

    def _resent(self, replica: Replica, hop: Hop) -> Mapping[str, str]:
        """The headers of what the client below sends again by itself."""
        self._count(replica, "hop_resend")
        hop.again()
        return hop.trace.headers()

    def _settle_success(self, permit: Permit, took_s: float) -> None:
        now = self._telemetry.clock()
        permit.success(now, took_s)
        self._hedge.saw(took_s)
        if self._limiter:
            self._limiter.answered(now, took_s, self._pool.in_flight())

    def _settle_failure(self, replica: Replica, permit: Permit, problem: BaseException) -> None:
        if not isinstance(problem, EngineFailure):
            permit.cancel()  # the client left, or another replica was quicker, or we are shutting down
            return
        self._pool.failed(replica, permit, problem)
        if problem.kind == "busy" and self._limiter:
            self._limiter.refused(self._telemetry.clock())
