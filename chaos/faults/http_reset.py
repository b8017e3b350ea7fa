"""Replies are lost: the target does what it was asked for, and the connection is reset before its answer arrives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips import toxics
from chaos.faults.grips.grip import ANSWER_S, Grip, grips_in, without_proxy
from chaos.faults.grips.sightings import every_one
from chaos.inventory import Target
from chaos.ports import Host, HttpReply
from chaos.settings import setting
from chaos.units import Ratio

_QUESTION = "/metrics"  # every part answers it with a body, and only a body can be cut


@dataclass(frozen=True)
class HttpReset:
    """Resets connections in the fault proxy before a target, inside the answer."""

    kind: ClassVar[str] = "http_reset"
    summary: ClassVar[str] = "The target does what it is asked, and its answers are lost to a reset connection."
    fidelity: ClassVar[str] = "HTTP"
    observer: ClassVar[str] = (
        "the observer's own request through the edge is reset, a direct one is served, and the proxy has counted hits"
    )

    after_bytes: int = setting("bytes of the answer's body that pass before the reset", default=0, least=0)
    share: Ratio = setting("share of the answers that are lost", default=Ratio(1))
    path: str | None = setting("only requests whose path begins so; default all, health checks too", default=None)

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target needs a proxy before it and must speak HTTP."""
        deaf = (f"{t.name}: it speaks {t.wire}, not HTTP" for t in targets if t.wire != "http")
        return (*without_proxy(targets), *deaf)

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """Choose the toxic's name. Raises CannotInject."""
        return await toxics.prepared(self.kind, targets, host)

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Add the toxic to each edge. Raises CannotInject."""
        del targets
        attributes = {"after_bytes": self.after_bytes, "match_path": self.path}
        await toxics.put(undo, "http_reset_mid_body", float(self.share), attributes, host)

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """A request of the observer's own is reset at each edge."""
        del targets
        return await every_one(_seen_reset(grip, undo, host) for grip in grips_in(undo))

    async def revert(self, undo: Undo, host: Host) -> None:
        """Remove the toxic from each edge. Raises RevertFailed."""
        await toxics.take_away(undo, host)

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """The toxic is absent and an answer arrives whole at each edge."""
        del targets
        return await every_one(_seen_whole(grip, undo, host) for grip in grips_in(undo))


async def _asked(address: str, undo: Undo, host: Host) -> HttpReply:
    return await host.http.call("GET", toxics.observing(address, _QUESTION, undo["toxic"]), timeout_s=ANSWER_S)


async def _seen_reset(grip: Grip, undo: Undo, host: Host) -> Sighting:
    via, direct = await _asked(grip.via or grip.address, undo, host), await _asked(grip.address, undo, host)
    lost = via.status == 0 and (via.error or "").startswith("broken")
    hit = await toxics.hits(grip, undo["toxic"], host)
    return Sighting(
        lost and direct.status == 200 and hit > 0,
        f"{grip.name}: the observer's answer through {grip.via} was {via.error or via.status}, a direct one "
        f"{direct.error or direct.status}; the toxic has hit {hit} requests",
    )


async def _seen_whole(grip: Grip, undo: Undo, host: Host) -> Sighting:
    via = await _asked(grip.via or grip.address, undo, host)
    works = Sighting(via.status == 200, f"the observer's answer through {grip.via} was {via.error or via.status}")
    return await toxics.seen_absent(grip, undo["toxic"], works, host)
