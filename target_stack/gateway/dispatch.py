"""Get one answer out of a pool of replicas: try, judge, and try another while that is allowed and paid for."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from types import TracebackType
from typing import Self

from target_stack.gateway.call import Call
from target_stack.gateway.engine_client import EngineStream
from target_stack.gateway.policies.backoff import pause_s
from target_stack.gateway.policies.breaker import Permit
from target_stack.gateway.policies.limiter import LimiterPolicy
from target_stack.gateway.policies.retry_budget import RetryBudgetPolicy
from target_stack.gateway.policies.settings import PolicySettings
from target_stack.gateway.replicas import Replica, ReplicaPool
from target_stack.gateway.requests import ChatRequest
from target_stack.gateway.retries import EngineFailure, TriesSoFar, may_retry
from target_stack.gateway.sse import Frame
from target_stack.gateway.telemetry import Telemetry

Sleep = Callable[[float], Awaitable[None]]


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

    def __init__(self, pool: ReplicaPool, replica: Replica, stream: EngineStream) -> None:
        self._pool = pool
        self._replica = replica
        self._stream = stream
        self._collected: list[Frame] | None = None
        self.served_by = replica.name

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
        await self._stream.finish()

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
    ) -> None:
        self._pool = pool
        self._settings = settings
        self._telemetry = telemetry
        self._attempts = attempts
        self._budget = budget
        self._limiter = limiter
        self._sleep = sleep

    async def answer(self, ask: ChatRequest, call: Call) -> LiveAnswer:
        """An answer with its first token; the whole of it when no stream was asked for.

        Raises NoAnswer, and EngineFailure (rejected) when the request itself is at fault.
        """
        tried: list[str] = []
        if not call.resend:
            self._budget.first_try()
        while True:
            picked = self._pool.pick(self._telemetry.clock(), tried)
            if picked is None:
                raise NoAnswer("no_replica")
            replica, permit = picked
            try:
                return await self._try(replica, permit, ask, call, retry=bool(tried))
            except EngineFailure as failure:
                tried.append(replica.name)
                if failure.kind == "rejected":
                    raise
                if not self._may_retry(failure, len(tried), call):
                    raise NoAnswer(failure.kind) from failure
            await self._sleep(pause_s(self._settings.backoff, len(tried), self._telemetry.rng))

    def _may_retry(self, failure: EngineFailure, made: int, call: Call) -> bool:
        remaining_s = call.deadline.remaining(self._telemetry.clock())
        so_far = TriesSoFar(made, content_sent=False, remaining_s=remaining_s)
        return may_retry(failure.kind, so_far, self._attempts) and self._budget.take_retry()

    async def _try(self, replica: Replica, permit: Permit, ask: ChatRequest, call: Call, *, retry: bool) -> LiveAnswer:
        answer = LiveAnswer(self._pool, replica, await self._start(replica, permit, ask, call, retry=retry))
        if not ask.stream:
            try:
                await answer.collect()
            except BaseException:
                await answer.close()
                raise
        return answer

    async def _start(
        self, replica: Replica, permit: Permit, ask: ChatRequest, call: Call, *, retry: bool
    ) -> EngineStream:
        started = self._telemetry.clock()
        self._telemetry.metrics.upstream_calls.add(self._pool.dependency, replica.name, "retry" if retry else "first")
        replica.in_flight += 1
        try:
            stream = await replica.client.start(
                ask.upstream(replica.client.model),
                call.headers(started),
                call.deadline.budget(started, self._settings.deadline),
                choices=ask.choices,
                on_progress=lambda: self._pool.progress(replica),
            )
        except BaseException as problem:
            replica.in_flight -= 1
            self._settle_failure(replica, permit, problem)
            raise
        now = self._telemetry.clock()
        permit.success(now, now - started)
        if self._limiter:
            self._limiter.answered(now, now - started, self._pool.in_flight())
        return stream

    def _settle_failure(self, replica: Replica, permit: Permit, problem: BaseException) -> None:
        if not isinstance(problem, EngineFailure):
            permit.cancel()  # the client left, or we are shutting down
            return
        self._pool.failed(replica, permit, problem)
        if problem.kind == "busy" and self._limiter:
            self._limiter.refused(self._telemetry.clock())
