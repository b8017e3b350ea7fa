"""The gateway's real policies, admission, dispatch and watch between modelled clients and engines, in virtual time.

    simulation = Simulation({"queue": {"capacity": 32}}, seed=3)      # policies as in the configuration; {} is hardened
    simulation.load(rate_per_s=60, until_s=30, priority="batch", client=Client(timeout_s=2, resends=3))
    simulation.at(10, simulation.engines[0].freeze)                   # kill, freeze, refuse(503), heal, or any function
    simulation.run(until_s=40)                                        # returns when every client has its answer
    simulation.share(lambda one: one.outcome == "good"), simulation.amplification(), simulation.events("breaker_opened")

Times in results count from the start of the simulation. A minute of traffic takes seconds, and the same seed gives the
same run. `capacity_per_s` says what the engines can do, so that loads can be given as multiples of it. Not real are
sockets, HTTP at the front door (a send goes straight to admission, as `app._answer` does), and the engines themselves.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

sys.path.insert(0, str(Path(__file__).parent))

from modelled_engine import Action, Asked, ModelledEngine, Speed

from chaos.testing.clock import START, VirtualLoop
from target_stack.gateway.call import Call
from target_stack.gateway.config import GatewayConfig, Upstream
from target_stack.gateway.errors import GatewayError
from target_stack.gateway.policies.deadline import Deadline
from target_stack.gateway.requests import ChatRequest
from target_stack.gateway.retries import EngineFailure
from target_stack.gateway.trace import Trace
from target_stack.gateway.wiring import Gateway, open_gateway

Priority = Literal["interactive", "batch"]
USUAL = Speed()
_TRACE = "0" * 31 + "1"


@dataclass(frozen=True)
class Client:
    """How long a user waits for one send, how often it sends again, and how long it pauses before."""

    timeout_s: float = 8.0
    resends: int = 0
    pause_s: float = 0.0


@dataclass
class Request:
    """A user's request and what became of it. `refused_s` is how long the last refusal took, `sends` counts all sends.

    good: whole; degraded: whole, with a step down; shed: refused with 503; broken: cut in the middle; abandoned: the
    user's patience ended.
    """

    load: str
    priority: Priority
    at: float
    work: int
    outcome: str = "open"
    why: str = ""
    sends: int = 0
    first_token_s: float | None = None
    refused_s: float | None = None
    ended: float = 0.0


@dataclass(frozen=True)
class Amplification:
    """What reached the main engines for each thing that users asked for: 1.0 is no retry at all."""

    calls: float
    tokens: float


@dataclass(frozen=True)
class _Load:
    name: str
    rate_per_s: float
    from_s: float
    until_s: float
    priority: Priority
    prompt_tokens: int
    max_tokens: int
    client: Client


class Simulation:
    """One run. Everything is set up before `run`; what it saw is read after it."""

    def __init__(
        self,
        policies: Mapping[str, Any] | None = None,
        *,
        engines: int = 2,
        speed: Speed = USUAL,
        fallback: Speed | None = None,
        seed: int = 1,
    ) -> None:
        """`engines` main replicas of `speed`; `fallback` adds a small model."""
        self.engines = [ModelledEngine(f"engine-{letter}", speed) for letter in "abcdefgh"[:engines]]
        self.small = ModelledEngine("engine-small", fallback) if fallback else None
        self.requests: list[Request] = []
        self.gateway: Gateway
        self._policies, self._seed = dict(policies or {}), seed
        self._loads: list[_Load] = []
        self._actions: list[tuple[float, Action]] = []

    def capacity_per_s(self, prompt_tokens: int = 20, max_tokens: int = 16) -> float:
        """Answers of this size that all main engines together make in a second."""
        return sum(engine.speed.answers_per_s(prompt_tokens, max_tokens) for engine in self.engines)

    def load(
        self,
        rate_per_s: float,
        until_s: float,
        *,
        from_s: float = 0.0,
        name: str = "chat",
        priority: Priority = "interactive",
        prompt_tokens: int = 20,
        max_tokens: int = 16,
        client: Client = Client(),
    ) -> None:
        """Open loop, Poisson arrivals: they do not wait for answers."""
        self._loads.append(_Load(name, rate_per_s, from_s, until_s, priority, prompt_tokens, max_tokens, client))

    def at(self, when_s: float, action: Action) -> None:
        """Do something to the stack at that moment."""
        self._actions.append((when_s, action))

    def run(self, until_s: float) -> None:
        """Play it to the end: until then, and until the last client has ended."""
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            runner.run(self._play(until_s))

    # What it saw.

    def of(self, load: str | None = None, from_s: float = 0.0, until_s: float = float("inf")) -> list[Request]:
        """Requests that arrived in that time."""
        return [one for one in self.requests if load in (None, one.load) and from_s <= one.at < until_s]

    def share(self, good: Callable[[Request], bool], **chosen: Any) -> float:
        """The share of requests (chosen as by `of`) for which this holds."""
        found = self.of(**chosen)
        return sum(map(good, found)) / len(found)

    def amplification(self, from_s: float = 0.0, until_s: float = float("inf")) -> Amplification:
        """Calls and tokens that the main engines were asked for, by what users asked for in that time."""
        wanted = self.of(from_s=from_s, until_s=until_s)
        calls = [call for engine in self.engines for call in self.calls(engine, from_s, until_s)]
        return Amplification(
            len(calls) / len(wanted), sum(call.work for call in calls) / sum(one.work for one in wanted)
        )

    def calls(self, engine: ModelledEngine, from_s: float = 0.0, until_s: float = float("inf")) -> list[Asked]:
        """Calls that went to one engine, probes left out."""
        return [call for call in engine.asked if from_s <= call.at - START < until_s]

    def events(self, name: str | None = None) -> list[dict[str, Any]]:
        """The gateway's events, each with `at` in seconds of the simulation."""
        found = self.gateway.telemetry.events.after(0)["events"]
        return [{**event, "at": event["mono"] - START} for event in found if name in (None, event["name"])]

    # How it runs.

    async def _play(self, until_s: float) -> None:
        clock = asyncio.get_running_loop().time
        config = GatewayConfig.from_config(self._config())
        async with open_gateway(config, clock, random.Random(self._seed), self._session_of) as self.gateway:
            for when_s, action in self._actions:
                asyncio.get_running_loop().call_at(START + when_s, action)
            async with asyncio.TaskGroup() as users:
                for number, load in enumerate(self._loads):
                    users.create_task(self._arrive(load, random.Random(f"{self._seed}/{number}"), users))
            await asyncio.sleep(max(0.0, START + until_s - clock()))

    def _config(self) -> dict[str, Any]:
        def upstream(engine: ModelledEngine) -> dict[str, str]:
            return {"name": engine.name, "url": f"http://{engine.name}"}

        return {
            "listen": "127.0.0.1:0",
            "model": "modelled",
            "engines": [upstream(engine) for engine in self.engines],
            "fallback": upstream(self.small) if self.small else None,
            "policies": self._policies,
        }

    async def _session_of(self, upstream: Upstream) -> ModelledEngine:
        engines = [*self.engines, *([self.small] if self.small else [])]
        return next(engine for engine in engines if engine.name == upstream.name)

    async def _arrive(self, load: _Load, dice: random.Random, users: asyncio.TaskGroup) -> None:
        clock = asyncio.get_running_loop().time
        at = load.from_s + dice.expovariate(load.rate_per_s)
        while at < load.until_s:
            await asyncio.sleep(max(0.0, START + at - clock()))
            request = Request(load.name, load.priority, at, load.prompt_tokens + load.max_tokens)
            self.requests.append(request)
            users.create_task(self._use(load, request))
            at += dice.expovariate(load.rate_per_s)

    async def _use(self, load: _Load, request: Request) -> None:
        fields = {"messages": [{"role": "user", "content": "word" * load.prompt_tokens}], "max_tokens": load.max_tokens}
        ask = ChatRequest(fields, stream=True, choices=1)
        for number in range(load.client.resends + 1):
            request.sends += 1
            try:
                async with asyncio.timeout(load.client.timeout_s):
                    await self._send(ask, request, resend=number > 0)
            except TimeoutError:
                request.outcome = "abandoned"
            if request.outcome in ("good", "degraded"):
                break
            await asyncio.sleep(load.client.pause_s)
        request.ended = asyncio.get_running_loop().time() - START

    async def _send(self, ask: ChatRequest, request: Request, *, resend: bool) -> None:
        """What the front door does with a chat; its refusals and broken streams become outcomes."""
        sent = asyncio.get_running_loop().time()
        try:
            await self._through(ask, request, resend=resend)
        except GatewayError as refused:
            request.outcome, request.why = "shed", refused.headers.get("x-shed-reason", str(refused))
            request.refused_s = asyncio.get_running_loop().time() - sent
        except EngineFailure as failure:
            request.outcome, request.why = "broken", failure.kind

    async def _through(self, ask: ChatRequest, request: Request, *, resend: bool) -> None:
        gateway, clock = self.gateway, asyncio.get_running_loop().time
        if resend and not gateway.budget.take_retry(ask.work()):
            raise gateway.admission.refuse("retry_budget")
        deadline = Deadline.of(clock(), gateway.config.policies.deadline.total_s)
        call = Call(Trace(_TRACE, "1" * 16), clock(), deadline, request.priority, resend=resend)
        async with gateway.doors.arrival.slot(call.priority, call.deadline.at):
            answer, degraded = await gateway.chain.answer(ask, call)
            try:
                request.first_token_s = clock() - START - request.at
                async with gateway.doors.first_token.slot(call.priority, call.deadline.at):
                    async for _ in answer.frames():
                        pass
            finally:
                await answer.close()
        request.outcome, request.why = ("degraded" if degraded else "good"), ",".join(degraded)
