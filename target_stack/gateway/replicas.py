"""The replicas of one role: who may be called next, and what each call says about its replica."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from target_stack.gateway.engine_client import EngineClient
from target_stack.gateway.policies.balancer import Balancer
from target_stack.gateway.policies.breaker import BreakerPolicy, Permit
from target_stack.gateway.policies.outlier import EngineLoad, OutlierDetector
from target_stack.gateway.policies.settings import PolicySettings
from target_stack.gateway.retries import EngineFailure, trouble_of
from target_stack.gateway.telemetry import STATE_NUMBERS, Telemetry

_STALL_SLACK = 0.9  # streams of one batch get their last token within this much of a stall period of each other


@dataclass
class Replica:
    """One engine with its breaker and its load."""

    client: EngineClient
    breaker: BreakerPolicy
    in_flight: int = 0
    wanted_at: float = -math.inf  # it asked to be left alone until then (Retry-After)
    busy_until: float = -math.inf  # it was busy a moment ago, so others go first

    @property
    def name(self) -> str:
        """Its name in the inventory."""
        return self.client.name


class ReplicaPool:
    """Replicas that answer for each other. `dependency` is the role's name in events and metrics."""

    def __init__(
        self, dependency: str, clients: Sequence[EngineClient], settings: PolicySettings, telemetry: Telemetry
    ) -> None:
        self.dependency = dependency
        self._settings = settings
        self._telemetry = telemetry
        limit_s = settings.deadline.first_token_s
        self._replicas = {
            client.name: Replica(
                client, telemetry.breaker(settings.breaker, limit_s, dependency=dependency, replica=client.name)
            )
            for client in clients
        }
        for name in self._replicas:
            telemetry.metrics.expect_calls(dependency, name)
        self._outlier = OutlierDetector(settings.outlier, list(self._replicas))
        self._balancer = Balancer(settings.balancer)

    def __iter__(self) -> Iterator[Replica]:
        return iter(self._replicas.values())

    def pick(self, now: float, tried: Iterable[str] = ()) -> tuple[Replica, Permit] | None:
        """The best replica that may be called now, with the permit to do so; None when there is none."""
        in_flight = {name: replica.in_flight for name, replica in self._replicas.items()}
        wanted = [name for name in self._outlier.routable() if self._replicas[name].wanted_at <= now]
        before = set(tried)
        order = self._balancer.order(wanted, in_flight, before)
        # Who refuses has nothing in flight, so the balancer alone would send everybody there.
        for name in sorted(order, key=lambda name: (name in before, self._replicas[name].busy_until > now)):
            permit = self._replicas[name].breaker.acquire(now)
            if permit is not None:
                return self._replicas[name], permit
        return None

    def in_flight(self) -> int:
        """Answers under way on all replicas."""
        return sum(replica.in_flight for replica in self)

    def available(self) -> bool:
        """Whether any replica is in rotation with a breaker that is not open."""
        return any(self._replicas[name].breaker.state != "open" for name in self._outlier.admitted())

    def admitted(self, replica: Replica) -> bool:
        """Whether it is in rotation."""
        return replica.name in self._outlier.admitted()

    def progress(self, replica: Replica) -> None:
        """A token came from it."""
        self._outlier.progress(self._telemetry.clock(), replica.name)

    def failed(self, replica: Replica, permit: Permit, failure: EngineFailure) -> None:
        """A try failed before its first token."""
        now = self._telemetry.clock()
        replica.wanted_at = now + min(failure.retry_after_s, self._settings.backoff.asked_most_s)
        if failure.kind == "busy":
            replica.busy_until = now + self._settings.backoff.cap_s
        if failure.kind in ("busy", "too_slow", "no_transfer"):
            permit.cancel()
        elif failure.kind == "rejected":
            permit.success(now, 0.0)
        else:
            permit.failure(now)
        self._judge(replica, failure)

    def broke(self, replica: Replica, failure: EngineFailure) -> None:
        """An answer broke after its first token, when its permit was long settled."""
        if trouble_of(failure.kind) is not None:
            replica.breaker.late_failure(self._telemetry.clock())
        self._judge(replica, failure)

    def unreachable(self, replica: Replica) -> None:
        """The liveness check found nobody there."""
        self._judge(replica, EngineFailure("unreachable", "no answer to a liveness check"))

    def reported(self, replica: Replica, load: EngineLoad) -> None:
        """Its own gauges were read."""
        self._outlier.reported(replica.name, load)

    def restored(self, replica: Replica) -> None:
        """A one-token probe succeeded."""
        if self._outlier.restored(replica.name):
            self._tell("replica_restored", replica, "probe_succeeded")

    def breaker_states(self) -> Iterator[tuple[Mapping[str, str], float]]:
        """Samples of gateway_breaker_state."""
        for replica in self:
            labels = {"dependency": self.dependency, "replica": replica.name}
            yield labels, STATE_NUMBERS[replica.breaker.state]

    def _judge(self, replica: Replica, failure: EngineFailure) -> None:
        trouble = trouble_of(failure.kind)
        if trouble is None:
            return
        silence_s = _STALL_SLACK * self._settings.deadline.inter_token_s
        silent_since = self._telemetry.clock() - silence_s if trouble == "stalled" else math.inf
        if self._outlier.trouble(replica.name, trouble, silent_since=silent_since):
            self._tell("replica_ejected", replica, failure.kind)
            replica.client.give_up_waiting()

    def _tell(self, event: str, replica: Replica, reason: str) -> None:
        self._telemetry.events.add(event, dependency=self.dependency, replica=replica.name, reason=reason)
