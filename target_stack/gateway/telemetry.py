"""What the parts of the gateway share: the clock, the dice, the events and the metrics of one process."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from target_stack.gateway.events import Clock, EventRing
from target_stack.gateway.metrics import GatewayMetrics
from target_stack.gateway.policies.breaker import BreakerPolicy, State, make_breaker
from target_stack.gateway.policies.settings import BreakerSettings

_STATE_EVENTS = {"open": "breaker_opened", "half_open": "breaker_half_open", "closed": "breaker_closed"}
STATE_NUMBERS = {"closed": 0.0, "half_open": 1.0, "open": 2.0}


@dataclass(frozen=True)
class Telemetry:
    """Handed to every part that decides or counts."""

    clock: Clock
    rng: random.Random
    events: EventRing
    metrics: GatewayMetrics

    def breaker(self, settings: BreakerSettings, limit_s: float, **labels: Any) -> BreakerPolicy:
        """A breaker that tells its changes as events with these labels."""

        def tell(now: float, state: State) -> None:
            self.events.add(_STATE_EVENTS[state], mono=now, **labels)

        return make_breaker(settings, limit_s=limit_s, rng=self.rng, on_change=tell)
