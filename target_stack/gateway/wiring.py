"""Joins configuration, policies and clients to one gateway; the only place that knows all of them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import aiohttp

from target_stack.fixtures import read_questions
from target_stack.gateway.admission import Admission, Doors, doors
from target_stack.gateway.cache.answers import AnswerCache
from target_stack.gateway.cache.client import CacheClient
from target_stack.gateway.cache.flights import Flights
from target_stack.gateway.config import GatewayConfig, Upstream
from target_stack.gateway.dependency import Dependency
from target_stack.gateway.dispatch import Dispatcher
from target_stack.gateway.drain import Drain
from target_stack.gateway.engine_client import EngineClient, open_session
from target_stack.gateway.events import Clock, EventRing, Tell
from target_stack.gateway.fallback import Answer, FallbackChain
from target_stack.gateway.ingest import WRITES, Ingest
from target_stack.gateway.json_lines import JsonLines
from target_stack.gateway.keeper import keep
from target_stack.gateway.metrics import GatewayMetrics
from target_stack.gateway.policies.autoscale import Autoscaler
from target_stack.gateway.policies.limiter import make_limiter
from target_stack.gateway.policies.queue import AdmissionQueue, ShedWatch
from target_stack.gateway.policies.retry_budget import RetryBudgetPolicy, make_retry_budget
from target_stack.gateway.policies.slots import Slots
from target_stack.gateway.prefill import ComputedThere, PrefillStage
from target_stack.gateway.recall_probe import RecallProbe
from target_stack.gateway.releases import FILE, ReleaseBook, Rules, keep_in, read_releases
from target_stack.gateway.repeat import Repeater
from target_stack.gateway.replicas import ReplicaPool
from target_stack.gateway.retries import EngineFailure
from target_stack.gateway.retrieval import HttpService, NoRetrieval, Retrieval
from target_stack.gateway.scaling import Scaling
from target_stack.gateway.telemetry import Telemetry
from target_stack.gateway.tools import GatewayTools
from target_stack.gateway.vector_store import VectorStoreClient
from target_stack.tools.client import ToolClient

Service = tuple[Dependency, HttpService]
EngineSessions = Callable[[Upstream], Awaitable[aiohttp.ClientSession]]
"""How the session for an engine is opened; a simulation hands in one whose engine lives in virtual time."""


@dataclass
class Gateway:
    """Everything a route needs. `doors` are the admission and an open door, in the order of the request's way."""

    config: GatewayConfig
    telemetry: Telemetry
    pools: tuple[ReplicaPool, ...]
    prefill: ReplicaPool | None
    admission: Admission
    doors: Doors
    drain: Drain
    chain: FallbackChain
    retrieval: Retrieval | NoRetrieval
    ingest: Ingest | None
    embedder: Service | None
    tools: GatewayTools | None
    agents: Service | None
    budget: RetryBudgetPolicy
    releases: ReleaseBook
    repeater: Repeater
    flights: Flights
    answers: AnswerCache | None

    def able(self) -> bool:
        """Whether any engine, main or small, can be asked."""
        return not self.drain.leaving and any(pool.available() for pool in self.pools)

    def all_pools(self) -> tuple[ReplicaPool, ...]:
        """Those that answer, and the one that computes prompts for them."""
        return (*self.pools, self.prefill) if self.prefill else self.pools

    async def when_client_is_gone(self, answer: Answer) -> None:
        """What becomes of an answer that nobody reads any more: by default nothing, and closing it stops the engine."""
        if self.config.policies.answer.client_gone == "finish":
            with suppress(EngineFailure):
                async for _ in answer.frames():
                    pass


@asynccontextmanager
async def open_gateway(
    config: GatewayConfig, clock: Clock, rng: random.Random, sessions: EngineSessions | None = None
) -> AsyncIterator[Gateway]:
    """A running gateway, its sessions and its background watch; all closed at exit."""
    async with AsyncExitStack() as stack:
        log = _open_log(config, stack)
        events = EventRing(clock, tell=log)
        telemetry = Telemetry(clock, rng, events, GatewayMetrics(), log, config.policies.log)
        builder = _Builder(config, telemetry, stack, sessions)
        gateway = await builder.gateway()
        _add_gauges(gateway, builder.budget)
        scaling = Scaling(Autoscaler(config.policies.autoscale), gateway.pools[0], gateway.admission, telemetry)
        ticks = (gateway.admission.tick, gateway.releases.tick, scaling.tick)
        watch = asyncio.create_task(
            _together(
                keep(gateway.all_pools(), ticks, config.policies.outlier, telemetry),
                telemetry.metrics.resources.watch_lag(),
                _examine(gateway),
            )
        )
        try:
            yield gateway
        finally:
            await _end(watch)


async def _end(task: asyncio.Task[None]) -> None:
    """Cancel a task for good; one that broke is not passed over in silence."""
    task.cancel()
    await asyncio.wait({task})
    if not task.cancelled():
        task.result()


async def _together(*watches: Coroutine[Any, Any, None]) -> None:
    async with asyncio.TaskGroup() as tasks:
        for watch in watches:
            tasks.create_task(watch)


async def _examine(gateway: Gateway) -> None:
    """The recall probe, where there is something to examine."""
    policies = gateway.config.policies
    if policies.recall.kind == "probe" and isinstance(gateway.retrieval, Retrieval):
        limit_s = policies.deadline.retrieval_s
        await RecallProbe(gateway.retrieval, read_questions(), policies.recall, gateway.telemetry, limit_s).run()


def _open_log(config: GatewayConfig, stack: AsyncExitStack) -> Tell:
    """Where events and requests are written down; nowhere without a file. Raises OSError."""
    if config.events_file is None:
        return lambda _mono, _name, _fields: None
    settings = config.policies.log
    lines = JsonLines(config.events_file, file_bytes=settings.file_bytes, files=settings.files)
    stack.callback(lines.close)
    return lines.add


class _Builder:
    """Makes the parts; sessions and connections are closed by `stack`."""

    def __init__(
        self, config: GatewayConfig, telemetry: Telemetry, stack: AsyncExitStack, sessions: EngineSessions | None
    ) -> None:
        self._config = config
        self._open_engine = sessions or self._over_http
        self._policies = config.policies
        self._telemetry = telemetry
        self._stack = stack
        self.budget = make_retry_budget(config.policies.retry_budget)

    async def gateway(self) -> Gateway:
        policies, fallback = self._policies, self._config.fallback
        limiter = make_limiter(policies.limiter)
        queue, watch = AdmissionQueue(policies.queue), ShedWatch(policies.shed_quiet_s)
        admission = Admission(queue, Slots(policies.slots), limiter, watch, self._telemetry)
        main = await self._pool("engine", self._config.engines)
        small = await self._pool("fallback-engine", (fallback,)) if fallback else None
        embedder = await self._service("embedder", self._config.embedder, policies.deadline.embeddings_s)
        prefill = await self._prefill()
        repeater = Repeater(policies, self.budget, self._telemetry)
        return Gateway(
            config=self._config,
            telemetry=self._telemetry,
            pools=(main, small) if small else (main,),
            prefill=prefill.pool if prefill else None,
            admission=admission,
            doors=doors(admission, policies.admission_at),
            drain=Drain(policies.drain, admission, self._telemetry),
            chain=FallbackChain(
                Dispatcher(
                    main,
                    policies,
                    self._telemetry,
                    attempts=policies.attempts,
                    budget=self.budget,
                    limiter=limiter,
                    sleep=asyncio.sleep,
                    prompts=prefill or ComputedThere(),
                ),
                self._small_dispatcher(small) if small else None,
                self._telemetry,
                canned_text=self._config.canned_text,
            ),
            retrieval=self._retrieval(embedder),
            ingest=self._ingest(embedder, repeater),
            embedder=embedder,
            tools=await self._tools(repeater),
            agents=await self._service("agent", self._config.agents, policies.deadline.agent_s),
            budget=self.budget,
            releases=self._releases(),
            repeater=repeater,
            flights=self._flights(),
            answers=self._answers(embedder),
        )

    async def _prefill(self) -> PrefillStage | None:
        upstreams = self._config.prefill
        pool = await self._pool("prefill", upstreams) if upstreams else None
        return PrefillStage(pool, self._policies, self._telemetry) if pool else None

    def _releases(self) -> ReleaseBook:
        config, policies = self._config, self._policies
        path = config.data_dir / FILE if config.data_dir else None
        rules = Rules(policies.canary, policies.release, config.model)
        return ReleaseBook(read_releases(path, config.release), rules, self._telemetry, keep_in(path))

    def _flights(self) -> Flights:
        flights = Flights(self._telemetry.metrics.single_flight_followers.add)
        self._stack.push_async_callback(flights.close)
        return flights

    def _answers(self, embedder: Service | None) -> AnswerCache | None:
        settings, address = self._policies.cache, self._config.cache
        if address is None:
            return None
        client = CacheClient(address, self._policies.side_calls)
        self._stack.push_async_callback(client.close)
        store = Dependency("cache", self._policies, settings.call_s, self._telemetry)
        answers = AnswerCache((store, client), embedder, settings, self._policies.deadline, self._telemetry)
        self._stack.push_async_callback(_end, asyncio.create_task(answers.keep_fresh()))
        return answers

    def _small_dispatcher(self, pool: ReplicaPool) -> Dispatcher:
        # One try: the small model is itself the second chance.
        return Dispatcher(
            pool,
            self._policies,
            self._telemetry,
            attempts=1,
            budget=make_retry_budget(self._policies.retry_budget),
            limiter=None,
            sleep=asyncio.sleep,
        )

    async def _pool(self, dependency: str, upstreams: Sequence[Upstream]) -> ReplicaPool:
        clients = [
            EngineClient(
                upstream,
                await self._open_engine(upstream),
                self._telemetry.clock,
                answers=self._policies.answer,
                resends=self._policies.retry.hop_resends,
            )
            for upstream in upstreams
        ]
        return ReplicaPool(dependency, clients, self._policies, self._telemetry)

    async def _over_http(self, upstream: Upstream) -> aiohttp.ClientSession:  # noqa: ARG002  # see EngineSessions
        return await self._stack.enter_async_context(open_session())

    async def _service(self, name: str, url: str | None, limit_s: float) -> Service | None:
        if url is None:
            return None
        session = await self._stack.enter_async_context(open_session())
        dependency = Dependency(name, self._policies, limit_s, self._telemetry)
        resends = self._policies.retry.hop_resends
        return dependency, HttpService(
            url, session, self._telemetry.clock, resends=resends, on_resend=dependency.resent
        )

    async def _tools(self, repeater: Repeater) -> GatewayTools | None:
        config, policies, telemetry = self._config, self._policies, self._telemetry
        if config.tools is None:
            return None
        session = await self._stack.enter_async_context(open_session())
        dependency = Dependency("tool", policies, policies.deadline.tool_s, telemetry)
        client = ToolClient(config.tools, config.tools_token, session, policies.tool_rules)
        return GatewayTools(dependency, client, repeater, policies, telemetry)

    def _retrieval(self, embedder: Service | None) -> Retrieval | NoRetrieval:
        limits, address = self._policies.deadline, self._config.vector_store
        if embedder is None or address is None:
            return NoRetrieval()
        client = VectorStoreClient(address, limits.connect_s, limits.vector_store_s)
        self._stack.push_async_callback(client.close)
        store = Dependency("vector-store", self._policies, limits.vector_store_s, self._telemetry)
        return Retrieval(embedder, (store, client), limits=limits, clock=self._telemetry.clock)

    def _ingest(self, embedder: Service | None, repeater: Repeater) -> Ingest | None:
        limits, settings, address = self._policies.deadline, self._policies.ingest, self._config.vector_store
        if embedder is None or address is None:
            return None
        client = VectorStoreClient(address, limits.connect_s, settings.write_s)
        self._stack.push_async_callback(client.close)
        store = Dependency(WRITES, self._policies, settings.write_s, self._telemetry)
        ingest = Ingest(embedder, (store, client), repeater, settings)
        self._stack.push_async_callback(ingest.close)
        return ingest


def _add_gauges(gateway: Gateway, budget: RetryBudgetPolicy) -> None:
    """Gauges that read the live state."""
    metrics, admission = gateway.telemetry.metrics, gateway.admission
    metrics.gauge("gateway_queue_depth", "Requests waiting to start.", lambda: admission.waiting)
    metrics.gauge("gateway_inflight_requests", "Requests being worked on.", lambda: admission.in_flight)
    metrics.gauge("gateway_concurrency_limit", "Requests that may be worked on at once.", lambda: admission.limit)
    metrics.gauge("gateway_canary_share", "Part of the users who get the canary.", lambda: gateway.releases.share)
    metrics.gauge(
        "gateway_release_split",
        "1 while users get a triple that nobody asked for.",
        lambda: gateway.releases.state.is_split,
    )
    metrics.gauge("gateway_retry_budget_tokens", "Retries that could be made now.", lambda: budget.calls)
    metrics.gauge("gateway_retry_budget_work_tokens", "Work that retries may cost now.", lambda: budget.work)
    metrics.gauges("gateway_breaker_state", "0 closed, 1 half-open, 2 open.", lambda: _breaker_states(gateway))


def _breaker_states(gateway: Gateway) -> Iterator[tuple[Mapping[str, str], float]]:
    for pool in gateway.all_pools():
        yield from pool.breaker_states()
    for dependency in _dependencies(gateway):
        yield from dependency.breaker_states()


def _dependencies(gateway: Gateway) -> Iterator[Dependency]:
    for service in (gateway.embedder, gateway.agents):
        if service is not None:
            yield service[0]
    if gateway.tools is not None:
        yield gateway.tools.dependency
    if isinstance(gateway.retrieval, Retrieval):
        yield gateway.retrieval.store
    if gateway.ingest is not None:
        yield gateway.ingest.store
    if gateway.answers is not None:
        yield gateway.answers.store
