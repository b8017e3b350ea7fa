"""Shows the autoscaling policy what the gateway does, and tells what it wants as events and gauges. Scales nothing."""

from __future__ import annotations

from target_stack.gateway.admission import Admission
from target_stack.gateway.policies.autoscale import Autoscaler
from target_stack.gateway.replicas import ReplicaPool
from target_stack.gateway.telemetry import Telemetry


class Scaling:
    """One pool that could be larger or smaller."""

    def __init__(self, policy: Autoscaler, pool: ReplicaPool, admission: Admission, telemetry: Telemetry) -> None:
        self._policy = policy
        self._pool = pool
        self._admission = admission
        self._telemetry = telemetry
        self._wanted = len(list(pool))
        metrics = telemetry.metrics
        metrics.gauge("gateway_replicas_wanted", "Main replicas that autoscaling asks for.", lambda: self._wanted)
        metrics.gauge("gateway_utilisation", "Demand over the slots of the main replicas.", self._utilisation)

    def tick(self) -> None:
        """Call now and then."""
        demand = self._pool.in_flight() + self._admission.waiting
        now = self._telemetry.clock()
        decision = self._policy.observe(now, demand, self._in_rotation(), len(list(self._pool)))
        if decision is None:
            return
        self._wanted = decision.wanted
        self._telemetry.events.add(
            f"scale_{decision.direction}_wanted",
            mono=now,
            dependency=self._pool.dependency,
            replicas=decision.replicas,
            wanted=decision.wanted,
            utilisation=round(decision.utilisation, 3),
        )

    def _in_rotation(self) -> int:
        return sum(self._pool.admitted(replica) for replica in self._pool)

    def _utilisation(self) -> float:
        return self._policy.utilisation(self._in_rotation())
