"""What a target's own health check says, and how long it takes to say it.

Evidence of what an operator would have seen, not of health: a vLLM server whose engine is frozen answers 200 in a
millisecond.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.inventory import ENGINE_ROLES, Target
from chaos.ports import Host
from chaos.probes.probe import Reading

_WITH_HEALTH = ("gateway", *ENGINE_ROLES)


@dataclass(frozen=True)
class HttpHealth:
    """Asks `/health` of gateways and engines, `/ping` of other HTTP targets. No reply is status 0."""

    kind: ClassVar[str] = "http_health"
    summary: ClassVar[str] = "asks a target's health endpoint: status and latency"
    period_s: ClassVar[float] = 1.0

    def applies_to(self, target: Target) -> bool:
        """Targets that speak HTTP."""
        return target.wire == "http"

    async def read(self, target: Target, host: Host) -> Reading:
        """`health_status` (0: no reply) and `health_latency_s`."""
        path = "/health" if target.role in _WITH_HEALTH else "/ping"
        asked = host.clock.now()
        reply = await host.http.call("GET", f"http://{target.address}{path}", timeout_s=1.0)
        latency_s = host.clock.now() - asked
        values = {"health_status": float(reply.status), "health_latency_s": latency_s}
        return Reading(self.kind, target.name, values=values)
