"""Where the prompt of a try comes from: the engine computes it itself, or fetches what a prefill engine has computed.

A try asks its `Prompts` for a `Prompt`, and tells it how the try went. When a fetched prompt did not bring a token in
time, nobody can tell whether the prefill engine, the way or the decode engine is at fault: the prefill's breaker counts
it as a failure and the decode as an error, which any token of its forgives.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

from target_stack.gateway.call import Call
from target_stack.gateway.policies.breaker import Permit
from target_stack.gateway.policies.deadline import TryBudget
from target_stack.gateway.policies.disaggregation import Reference, References
from target_stack.gateway.policies.settings import PolicySettings
from target_stack.gateway.replicas import Replica, ReplicaPool
from target_stack.gateway.requests import ChatRequest, text_of
from target_stack.gateway.retries import EngineFailure
from target_stack.gateway.telemetry import Telemetry

NO_PREFILL = "no_prefill"
CallKind = Literal["first", "retry", "hedge", "hop_resend"]
_ASK: Mapping[str, Any] = {"do_remote_decode": True, "do_remote_prefill": False}
_NOT_FETCHED = frozenset({"no_first_token", "error", "bad_gateway"})


class NoPrompt(Exception):
    """There is no way to the prompt but one that is closed."""


@dataclass(frozen=True)
class Prompt:
    """A prompt that the engine computes itself. `said` goes into its request, `degraded` into the answer's header."""

    said: Mapping[str, Any] = field(default_factory=dict)
    degraded: tuple[str, ...] = ()

    def limits(self, budget: TryBudget, _now: float, /) -> TryBudget:
        """The limits of a try with it."""
        return budget

    def arrived(self, _now: float, /) -> None:
        """The first token is there."""

    def failed(self, problem: BaseException, _now: float, /) -> BaseException:
        """The try failed before that; as what it counts."""
        return problem


@dataclass(frozen=True)
class FetchedPrompt(Prompt):
    """A prompt that the engine fetches by the reference in `said`."""

    replica: Replica = field(kw_only=True)
    permit: Permit = field(kw_only=True)
    transfer_s: float = field(kw_only=True)
    asked_at: float = field(kw_only=True)

    def limits(self, budget: TryBudget, now: float, /) -> TryBudget:
        """The first token may take as long as a transfer may."""
        return replace(budget, first_token_at=min(budget.end_at, now + self.transfer_s))

    def arrived(self, now: float, /) -> None:
        """The prefill engine has done its part."""
        self.permit.success(now, now - self.asked_at)

    def failed(self, problem: BaseException, now: float, /) -> BaseException:
        """See the module."""
        if not isinstance(problem, EngineFailure) or problem.kind not in _NOT_FETCHED:
            self.permit.cancel()
            return problem
        self.permit.failure(now)
        return EngineFailure("no_transfer", "the prompt did not come from the prefill engine", status=problem.status)


class Prompts(Protocol):
    """Gives each try its prompt."""

    async def ready(self, ask: ChatRequest, call: Call, kind: CallKind) -> Prompt:
        """The prompt, as soon as the engine can be asked. Raises NoPrompt."""
        ...


class ComputedThere:
    """Every engine computes its own."""

    async def ready(self, _ask: ChatRequest, _call: Call, _kind: CallKind, /) -> Prompt:
        """At once."""
        return Prompt()


class PrefillStage:
    """Has prompts computed by the engines of a pool."""

    def __init__(self, pool: ReplicaPool, settings: PolicySettings, telemetry: Telemetry) -> None:
        self.pool = pool
        self._settings = settings
        self._own = settings.disaggregation
        self._telemetry = telemetry
        self._references = References(self._own)

    async def ready(self, ask: ChatRequest, call: Call, kind: CallKind) -> Prompt:
        """The reference of a first try's prompt. What is tried again goes a way that cannot fail for the same reason:
        the decode engine computes the prompt alone. Raises NoPrompt where that is not allowed.
        """
        alone = self._own.without_prefill == "decode_alone"
        picked = self.pool.pick(self._telemetry.clock()) if kind == "first" or not alone else None
        prompt = await self._computed(picked, ask, call) if picked else None
        if prompt is None and not alone:
            raise NoPrompt
        if prompt is None:
            self._telemetry.metrics.fallback.add(NO_PREFILL)
        return prompt or Prompt(degraded=(NO_PREFILL,))

    async def _computed(self, picked: tuple[Replica, Permit], ask: ChatRequest, call: Call) -> Prompt | None:
        """None when the prefill engine failed."""
        (replica, permit), asked_at = picked, self._telemetry.clock()
        words = "\n".join(text_of(message) for message in ask.fields["messages"])
        try:
            reference = self._references.find(words, asked_at) or await self._ask(replica, ask, call)
        except EngineFailure as failure:
            self.pool.failed(replica, permit, failure)
            return None
        except BaseException:
            permit.cancel()
            raise
        self._references.made(words, reference, self._telemetry.clock())
        return FetchedPrompt(
            {"kv_transfer_params": reference},
            replica=replica,
            permit=permit,
            transfer_s=self._own.transfer_s,
            asked_at=asked_at,
        )

    async def _ask(self, replica: Replica, ask: ChatRequest, call: Call) -> Reference:
        now = self._telemetry.clock()
        self._telemetry.metrics.upstream_calls.add(self.pool.dependency, replica.name, "first")
        budget = call.deadline.budget(now, self._settings.deadline)
        limits = replace(budget, first_token_at=min(budget.end_at, now + self._own.prefill_s))
        replica.in_flight += 1
        hop = self._telemetry.hop(call.trace, self.pool.dependency, replica.name)
        try:
            reference = await replica.client.prefill(_for_prefill(ask, replica), call.part_of(hop).headers(now), limits)
            hop.end("ok")
        except EngineFailure as failure:
            hop.end(failure.kind)
            raise
        finally:
            replica.in_flight -= 1
            hop.end("cancelled")  # only what has no end yet
        self.pool.progress(replica)
        if not self._own.believes(reference, call.trace_id):
            raise EngineFailure("malformed", "the prefill engine gave the reference of another request")
        return reference


def _for_prefill(ask: ChatRequest, replica: Replica) -> dict[str, Any]:
    """The same request, to be computed up to its first token and held."""
    body = ask.upstream(replica.client.model)
    for key in ("stream_options", "min_tokens", "max_completion_tokens", "n"):
        body.pop(key, None)
    return {**body, "stream": False, "max_tokens": 1, "kv_transfer_params": _ASK}
