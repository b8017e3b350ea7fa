"""What the parts of the gateway share: the clock, the dice, the events and the metrics of one process."""

from __future__ import annotations

import random
import secrets
from dataclasses import dataclass, field
from typing import Any

from target_stack.gateway.events import Clock, EventRing, Tell
from target_stack.gateway.hops import Hop
from target_stack.gateway.metrics import GatewayMetrics
from target_stack.gateway.policies.breaker import BreakerPolicy, State, make_breaker
from target_stack.gateway.policies.observing import LogSettings, is_detailed
from target_stack.gateway.policies.settings import BreakerSettings
from target_stack.gateway.request_record import RequestRecord
from target_stack.gateway.trace import Trace
from target_stack.spans import SpanRing

_STATE_EVENTS = {"open": "breaker_opened", "half_open": "breaker_half_open", "closed": "breaker_closed"}
STATE_NUMBERS = {"closed": 0.0, "half_open": 1.0, "open": 2.0}


@dataclass(frozen=True)
class Telemetry:
    """Handed to every part that decides or counts."""

    clock: Clock
    rng: random.Random
    events: EventRing
    metrics: GatewayMetrics
    log: Tell = lambda _mono, _name, _fields: None
    settings: LogSettings = LogSettings()
    spans: SpanRing = field(init=False)

    def __post_init__(self) -> None:
        """The ring of this process, whose ids no earlier life of it has used."""
        object.__setattr__(self, "spans", SpanRing(self.clock, secrets.randbits(63)))

    def began(self, trace: Trace, route: str) -> RequestRecord:
        """The account of a request that has just arrived."""
        detailed = is_detailed(trace.trace_id, self.settings.token_detail_share)
        return RequestRecord(trace, route, self.clock(), token_times_s=[] if detailed else None)

    def admitted(self, record: RequestRecord) -> None:
        """The request has waited for its turn, and work on it begins."""
        record.queue_s = self.clock() - record.arrived
        self.metrics.queue_seconds.observe(record.queue_s)

    def ended(self, record: RequestRecord, outcome: str) -> None:
        """Count a request and write it down, whatever became of it."""
        now = self.clock()
        line = record.line(outcome=outcome, duration_s=now - record.arrived)
        self.metrics.requests.add(record.route, outcome)
        self.metrics.request_seconds.observe(now - record.arrived)
        if record.finish_reasons:
            empty = not record.output_tokens and not record.characters
            self.metrics.content.count(line["degraded"], record.finish_reasons, record.output_tokens, empty=empty)
        self.log(now, "request", line)
        trace = record.trace
        place = (trace.trace_id, trace.parent_id, trace.caller_id, "callee", record.route, "")
        self.spans.add(*place, record.arrived, now, outcome, 1, record.prompt_tokens, record.output_tokens)

    def hop(self, trace: Trace, name: str, peer: str, attempt: int = 1) -> Hop:
        """A call to a dependency begins."""
        return Hop(self.spans, trace, name, peer, attempt)

    def breaker(self, settings: BreakerSettings, limit_s: float, **labels: Any) -> BreakerPolicy:
        """A breaker that tells its changes as events with these labels."""

        def tell(now: float, state: State) -> None:
            self.events.add(_STATE_EVENTS[state], mono=now, **labels)

        return make_breaker(settings, limit_s=limit_s, rng=self.rng, on_change=tell)
