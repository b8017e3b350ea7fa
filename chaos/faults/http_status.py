"""Requests are answered with an error before they reach the target, which is well and hears nothing of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips import toxics
from chaos.faults.grips.grip import ANSWER_S, Grip, grips_in, without_proxy
from chaos.faults.grips.sightings import every_one
from chaos.inventory import Target
from chaos.ports import Host
from chaos.settings import setting
from chaos.units import Duration, Ratio

_QUESTION = "/ping"


@dataclass(frozen=True)
class HttpStatus:
    """Answers in the fault proxy before a target."""

    kind: ClassVar[str] = "http_status"
    summary: ClassVar[str] = "Requests to the target get an error status at once; the target itself is well."
    fidelity: ClassVar[str] = "HTTP"
    observer: ClassVar[str] = (
        "the observer's own request through the edge gets the status, a direct one is served, and the proxy counts hits"
    )

    status: int = setting("status of the answers", default=503, least=400, most=599)
    retry_after: Duration | None = setting(
        "Retry-After of the answers, whole seconds; default none", default=None, least=1, most=3600
    )
    share: Ratio = setting("share of the requests that are answered so", default=Ratio(1))
    path: str | None = setting("only requests whose path begins so; default all, health checks too", default=None)

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target needs a proxy before it and must speak HTTP."""
        deaf = (f"{t.name}: it speaks {t.wire}, not HTTP" for t in targets if t.wire != "http")
        return (*without_proxy(targets), *deaf)

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """Choose the toxic's name. Raises CannotInject."""
        return {**await toxics.prepared(self.kind, targets, host), "status": self.status}

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Add the toxic to each edge. Raises CannotInject."""
        del targets
        attributes = {
            "status": self.status,
            "retry_after": None if self.retry_after is None else round(self.retry_after),
            "match_path": self.path,
        }
        await toxics.put(undo, "http_status", float(self.share), attributes, host)

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """A request of the observer's own gets the status at each edge."""
        del targets
        return await every_one(_seen_refused(grip, undo, host) for grip in grips_in(undo))

    async def revert(self, undo: Undo, host: Host) -> None:
        """Remove the toxic from each edge. Raises RevertFailed."""
        await toxics.take_away(undo, host)

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """The toxic is absent and a request is answered by the target at each edge."""
        del targets
        return await every_one(_seen_answered(grip, undo, host) for grip in grips_in(undo))


async def _asked(address: str, undo: Undo, host: Host) -> int:
    url = toxics.observing(address, _QUESTION, undo["toxic"])
    return (await host.http.call("GET", url, timeout_s=ANSWER_S)).status


async def _seen_refused(grip: Grip, undo: Undo, host: Host) -> Sighting:
    via, direct = await _asked(grip.via or grip.address, undo, host), await _asked(grip.address, undo, host)
    hit = await toxics.hits(grip, undo["toxic"], host)
    return Sighting(
        via == undo["status"] and direct == 200 and hit > 0,
        f"{grip.name}: the observer's request through {grip.via} got status {via}, a direct one {direct}; "
        f"the toxic has hit {hit} requests",
    )


async def _seen_answered(grip: Grip, undo: Undo, host: Host) -> Sighting:
    via = await _asked(grip.via or grip.address, undo, host)
    works = Sighting(via == 200, f"the observer's request through {grip.via} got status {via}")
    return await toxics.seen_absent(grip, undo["toxic"], works, host)
