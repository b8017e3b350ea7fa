"""Every number the gateway decides by, as one frozen tree.

`PolicySettings.from_config(config["policies"])` is the only reader, so a planted weakness is a change of
configuration and never a branch in the code. Unknown keys, wrong types and time limits that contradict each other are
refused at start.
"""

from __future__ import annotations

import dataclasses
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

from target_stack.gateway.policies.answers import AnswerSettings
from target_stack.gateway.policies.autoscale import AutoscaleSettings
from target_stack.gateway.policies.balancer import BalancerSettings
from target_stack.gateway.policies.caching import CacheSettings, SingleFlightSettings
from target_stack.gateway.policies.canary import CanarySettings
from target_stack.gateway.policies.disaggregation import DisaggregationSettings
from target_stack.gateway.policies.hedge import HedgeSettings
from target_stack.gateway.policies.ingest import IngestSettings
from target_stack.gateway.policies.limiter import LimiterSettings
from target_stack.gateway.policies.observing import LogSettings, RecallSettings
from target_stack.gateway.policies.prompt_form import PromptSettings
from target_stack.gateway.policies.queue import QueueSettings
from target_stack.gateway.policies.release import ReleaseSettings
from target_stack.gateway.policies.retry_classes import RetrySettings
from target_stack.gateway.policies.slots import SlotSettings
from target_stack.gateway.policies.tool_key import ToolKey
from target_stack.tools.rules import ToolRules

T = TypeVar("T")


@dataclass(frozen=True)
class DeadlineSettings:
    """Time limits of one request, in seconds, widest first. A wider limit below a narrower one is refused."""

    total_s: float = 20.0
    per_try_s: float = 15.0
    first_token_s: float = 1.5
    connect_s: float = 0.5
    inter_token_s: float = 1.0
    retrieval_s: float = 0.4
    embedder_s: float = 0.2
    vector_store_s: float = 0.2
    embeddings_s: float = 2.0
    tool_s: float = 3.0
    agent_s: float = 10.0

    def __post_init__(self) -> None:
        """Raises ValueError naming the two limits that contradict each other."""
        tiers = (
            ("total_s", "per_try_s"),
            ("per_try_s", "first_token_s"),
            ("first_token_s", "connect_s"),
            ("retrieval_s", "embedder_s"),
            ("retrieval_s", "vector_store_s"),
            ("total_s", "retrieval_s"),
            ("total_s", "embeddings_s"),
            ("total_s", "tool_s"),
            ("total_s", "agent_s"),
            ("per_try_s", "inter_token_s"),
        )
        for wider, narrower in tiers:
            if getattr(self, wider) < getattr(self, narrower):
                raise ValueError(f"policies.deadline: {narrower} is longer than {wider}, which would always fire first")


@dataclass(frozen=True)
class BreakerSettings:
    """When calls to a dependency stop. `kind` says which calls are recent: those within `window_s`, or the last
    `window_calls`; `none` wires a breaker that never opens.
    """

    kind: Literal["time", "count", "none"] = "time"
    window_s: float = 10.0
    window_calls: int = 100
    minimum_calls: int = 10
    failure_ratio: float = 0.5
    consecutive_failures: int = 5
    slow_share: float = 0.8  # a call that took more than this share of its time limit is slow
    slow_ratio: float = 0.9
    open_s: float = 1.0
    open_jitter: float = 0.2
    half_open_permits: int = 2
    half_open_successes: int = 2
    permit_lease_s: float = 10.0


@dataclass(frozen=True)
class RetryBudgetSettings:
    """How many retries successes may buy: `burst` in calls, `work_burst` in tokens; work beyond that is never retried.
    `kind: unlimited` wires a budget that always says yes.
    """

    kind: Literal["token_bucket", "unlimited"] = "token_bucket"
    ratio: float = 0.1
    burst: float = 10.0
    work_burst: float = 10_000.0


@dataclass(frozen=True)
class BackoffSettings:
    """Pause before a retry. `kind: exponential` has no jitter, `kind: none` retries at once. A Retry-After is believed
    up to `asked_most_s`.
    """

    kind: Literal["full_jitter", "exponential", "none"] = "full_jitter"
    base_s: float = 0.02
    cap_s: float = 0.25
    asked_most_s: float = 5.0


@dataclass(frozen=True)
class OutlierSettings:
    """Ejection and restoration of replicas, and how often they are looked at.

    `evidence: status` believes the liveness check alone, `evidence: running` believes the engines' own gauges about
    stalls; `routing: everyone` keeps sending to replicas that are out.
    """

    evidence: Literal["progress", "running", "status"] = "progress"
    routing: Literal["admitted", "everyone"] = "admitted"
    consecutive_errors: int = 3
    consecutive_stalls: int = 3
    liveness_period_s: float = 0.2
    probe_period_s: float = 0.5
    probe_timeout_s: float = 0.5


@dataclass(frozen=True)
class DrainSettings:
    """From SIGTERM to the exit, in seconds: how long /health says 503 before anybody is refused, then how long started
    work may go on. `kind: none` leaves at once and cuts whatever runs.
    """

    kind: Literal["graceful", "none"] = "graceful"
    notice_s: float = 0.2
    finish_s: float = 5.0


@dataclass(frozen=True)
class PolicySettings:
    """The whole tree. `attempts` counts all tries of a request on the main replicas, the first included;
    `admission_at` is where on its way a request may be refused.
    """

    attempts: int = 2
    deadline: DeadlineSettings = field(default_factory=DeadlineSettings)
    breaker: BreakerSettings = field(default_factory=BreakerSettings)
    retry_budget: RetryBudgetSettings = field(default_factory=RetryBudgetSettings)
    retry: RetrySettings = field(default_factory=RetrySettings)
    backoff: BackoffSettings = field(default_factory=BackoffSettings)
    hedge: HedgeSettings = field(default_factory=HedgeSettings)
    answer: AnswerSettings = field(default_factory=AnswerSettings)
    queue: QueueSettings = field(default_factory=QueueSettings)
    slots: SlotSettings = field(default_factory=SlotSettings)
    admission_at: Literal["arrival", "first_token"] = "arrival"
    limiter: LimiterSettings = field(default_factory=LimiterSettings)
    balancer: BalancerSettings = field(default_factory=BalancerSettings)
    outlier: OutlierSettings = field(default_factory=OutlierSettings)
    log: LogSettings = field(default_factory=LogSettings)
    recall: RecallSettings = field(default_factory=RecallSettings)
    canary: CanarySettings = field(default_factory=CanarySettings)
    release: ReleaseSettings = field(default_factory=ReleaseSettings)
    tool_key: ToolKey = "per_request"
    tool_rules: ToolRules = field(default_factory=ToolRules)
    cache: CacheSettings = field(default_factory=CacheSettings)
    single_flight: SingleFlightSettings = field(default_factory=SingleFlightSettings)
    prompt: PromptSettings = field(default_factory=PromptSettings)
    ingest: IngestSettings = field(default_factory=IngestSettings)
    side_calls: int = 64  # calls in flight at once to one of embedder, vector store, tools
    shed_quiet_s: float = 1.0  # shedding counts as stopped after this long without a shed
    drain: DrainSettings = field(default_factory=DrainSettings)
    autoscale: AutoscaleSettings = field(default_factory=AutoscaleSettings)
    disaggregation: DisaggregationSettings = field(default_factory=DisaggregationSettings)

    def __post_init__(self) -> None:
        """Raises ValueError for a breaker that takes a call for lost while it may still be under way."""
        limits = self.deadline
        side_s = (limits.embeddings_s, limits.tool_s, limits.agent_s, limits.vector_store_s, self.ingest.write_s)
        longest_s = max(limits.first_token_s, *side_s)
        if self.breaker.permit_lease_s < longest_s:
            raise ValueError("policies.breaker.permit_lease_s is shorter than the longest call that it guards")
        if self.breaker.kind == "count" and self.breaker.window_calls < self.breaker.minimum_calls:
            raise ValueError("policies.breaker: a window of fewer calls than minimum_calls never judges")

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> PolicySettings:
        """Read `config["policies"]`. Raises ValueError naming the key."""
        return build(cls, config, "policies")


def build(cls: type[T], config: Mapping[str, Any], path: str) -> T:
    """Make a settings dataclass of a mapping, strictly. Raises ValueError naming the key that is unknown or of a
    wrong type.
    """
    hints = typing.get_type_hints(cls)
    unknown = sorted(set(config) - set(hints))
    if unknown:
        raise ValueError(f"{path}: unknown key {unknown[0]!r}; known are {', '.join(hints)}")
    return cls(**{key: _value(hints[key], value, f"{path}.{key}") for key, value in config.items()})


def _value(wanted: Any, value: Any, path: str) -> Any:
    if dataclasses.is_dataclass(wanted) and isinstance(wanted, type):
        if not isinstance(value, Mapping):
            raise ValueError(f"{path}: expected an object")
        return build(wanted, value, path)
    if typing.get_origin(wanted) is Literal:
        if value not in typing.get_args(wanted):
            raise ValueError(f"{path}: {value!r} is none of {', '.join(typing.get_args(wanted))}")
        return value
    if typing.get_origin(wanted) is tuple:
        if not isinstance(value, (list, tuple)):
            raise ValueError(f"{path}: expected a list")
        return tuple(_value(typing.get_args(wanted)[0], each, path) for each in value)
    if isinstance(value, bool) or not isinstance(value, int if wanted is int else (int, float)) or value < 0:
        raise ValueError(f"{path}: expected a number not below 0, got {value!r}")
    return wanted(value)
