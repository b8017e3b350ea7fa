"""A catalog that looks real and harms nobody: what `spec` is tested with, so that its texts never depend on a concrete
fault.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Literal

from chaos.settings import setting
from chaos.spec.catalog import Catalog
from chaos.spec.model import Misreading, Unit
from chaos.units import Duration, Ratio, Size


class _Harmless:
    """The verbs that the protocol asks for; spec never calls them."""

    fidelity: ClassVar[str] = "none"
    observer: ClassVar[str] = "nobody"

    def problems(self, targets):
        return ()

    async def prepare(self, targets, host):
        return {}

    async def inject(self, targets, undo, host): ...

    async def confirm(self, targets, undo, host): ...

    async def revert(self, undo, host): ...

    async def confirm_gone(self, targets, undo, host): ...


@dataclass(frozen=True)
class Noop(_Harmless):
    kind: ClassVar[str] = "noop"
    summary: ClassVar[str] = "Harms nobody: the control."


@dataclass(frozen=True)
class ProcessKill(_Harmless):
    kind: ClassVar[str] = "process_kill"
    summary: ClassVar[str] = "Kills every process of a target."

    signal: Literal["KILL", "TERM"] = setting("signal that is sent", default="KILL")
    restart: Literal["on_revert", "supervisor"] = setting("who starts it again", default="on_revert")


@dataclass(frozen=True)
class NetLatency(_Harmless):
    kind: ClassVar[str] = "net_latency"
    summary: ClassVar[str] = "Delays the bytes of a target."

    latency: Duration = setting("added delay")
    jitter: Duration = setting("spread around it", default=Duration(0))
    direction: Literal["upstream", "downstream"] = setting("which way is slow", default="downstream")
    share: Ratio = setting("share of connections", default=Ratio(1))


@dataclass(frozen=True)
class StreamCut(_Harmless):
    kind: ClassVar[str] = "stream_cut"
    summary: ClassVar[str] = "Closes a stream in the middle."

    after: Size = setting("bytes that pass before the cut")
    times: tuple[int, ...] = setting("which requests of a connection", default=())


@dataclass(frozen=True)
class SuccessRatio:
    name: ClassVar[str] = "success_ratio"
    summary: ClassVar[str] = "Share of requests that were served."
    unit: ClassVar[Unit] = "ratio"
    needs_window: ClassVar[bool] = True
    compared: ClassVar[Unit] = "points"

    load: str | None = setting("only this load", default=None)


@dataclass(frozen=True)
class Ttft:
    name: ClassVar[str] = "ttft"
    summary: ClassVar[str] = "Time from the intended send to the first token."
    unit: ClassVar[Unit] = "duration"
    needs_window: ClassVar[bool] = True
    compared: ClassVar[Unit] = "factor"

    quantile: Literal["p50", "p90", "p95", "p99"] = setting("which quantile", default="p99")
    load: str | None = setting("only this load", default=None)


@dataclass(frozen=True)
class RetryAmplification:
    name: ClassVar[str] = "retry_amplification"
    summary: ClassVar[str] = "Calls a dependency gets for each request, compared with the baseline."
    unit: ClassVar[Unit] = "factor"
    needs_window: ClassVar[bool] = True

    dependency: str = setting("which dependency")


@dataclass(frozen=True)
class RequestsRunning:
    name: ClassVar[str] = "requests_running"
    summary: ClassVar[str] = "Requests that are still being worked on."
    unit: ClassVar[Unit] = "count"
    needs_window: ClassVar[bool] = True


@dataclass(frozen=True)
class RecoveryTime:
    name: ClassVar[str] = "recovery_time"
    summary: ClassVar[str] = "Time from the last revert until all is as before."
    unit: ClassVar[Unit] = "duration"
    needs_window: ClassVar[bool] = False

    of: Literal["success_ratio", "ttft"] = setting("what has to be as before")


@dataclass(frozen=True)
class Event:
    name: ClassVar[str] = "event"
    summary: ClassVar[str] = "Time from a moment of a fault until the stack says something."
    unit: ClassVar[Unit] = "duration"
    needs_window: ClassVar[bool] = False

    event: str = setting("name of the event")
    within: Duration = setting("latest time for it")
    of: str = setting("moment that the time counts from: FAULT.start or FAULT.end")
    dependency: str | None = setting("only events about this dependency", default=None)


@dataclass(frozen=True)
class Metric:
    name: ClassVar[str] = "metric"
    summary: ClassVar[str] = "A Prometheus series."
    unit: ClassVar[Unit] = "factor"
    needs_window: ClassVar[bool] = True

    metric: str = setting("name{label=value}")
    reduce: Literal["last", "max", "rate"] = setting("how a window becomes one number", default="last")

    def __post_init__(self):
        if not re.fullmatch(r"[a-z_]+(\{[^{}]*\})?", self.metric):
            raise ValueError(f"`{self.metric}` is no series such as name{{label=value}}")


@dataclass(frozen=True)
class Sql:
    name: ClassVar[str] = "sql"
    summary: ClassVar[str] = "A number that a query gives; this one knows no word `nope`."
    unit: ClassVar[Unit] = "factor"
    needs_window: ClassVar[bool] = False
    may_have_window: ClassVar[bool] = True

    sql: str = setting("the query")

    def misread(self):
        at = self.sql.find("nope")
        return None if at < 0 else Misreading("sql", "there is no `nope`", "did you mean `hope`?", at, 4)


FAULTS = (Noop, ProcessKill, NetLatency, StreamCut)
MEASURES = (SuccessRatio, Ttft, RetryAmplification, RequestsRunning, RecoveryTime, Event, Metric, Sql)

CATALOG = Catalog(
    faults=FAULTS,
    measures=MEASURES,
    prompts=frozenset({"small-talk", "product-questions"}),
    runbooks=frozenset({"vector-store-outage", "engine-stall", "retry-storm"}),
)

GOOD = """\
version: 1
title: The vector store goes away for fifteen seconds
why: Retrieval is a soft dependency. Answers may lose their citations; users must still be served.
owner: search-sre
runbook: vector-store-outage
tags: [retrieval, quarterly, ci]

blast_radius: {roles: [vector-store, engine], targets: 1, duration: 30s}

load:
  - name: chat
    route: rag
    prompts: product-questions
    rate: 20/s
    arrivals: poisson
    client: {timeout: 8s, retries: 0}
    slo:
      ttft: 2s
  - {name: talk, route: chat, rate: 90/m, stream: false}

windows: {baseline: 15s, recovery: 20s, settled: 15s}

faults:
  - name: outage
    kind: process_kill
    target: {role: vector-store}
    restart: on_revert
    at: 0s
    for: 15s
  - name: slow
    kind: net_latency
    target:
      node: any
      count: 1
    latency: 300ms
    jitter: 20ms
    share: 99.5%
    at: 5s
    for: 5s

guards:
  - {measure: success_ratio, load: chat, below: 50%, over: 5s}

hypotheses:
  - {name: users are served,   window: outage,  measure: success_ratio, load: chat, at_least: 99%}
  - {name: no slow failure,    window: outage,  measure: ttft, quantile: p99, at_most: 1.5s, grace: 1s}
  - {name: breaker opens,      event: breaker_opened, dependency: vector-store, within: 3s, of: outage.start}
  - {name: breaker closes,     event: breaker_closed, dependency: vector-store, within: 10s, of: outage.end}
  - {name: no pile-on,         window: fault,   measure: retry_amplification, dependency: vector-store, at_most: 1.1}
  - {name: quick recovery,     measure: recovery_time, of: success_ratio, at_most: 10s}
  - {name: nothing left,       window: settled, measure: requests_running, at_most: 0}
  - name: breaker is shut
    window: settled
    metric: gateway_breaker_state{dependency="vector-store"}
    at_most: 0
"""
