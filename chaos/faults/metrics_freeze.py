"""The target's metrics stand still: every reader gets the same old page with status 200, whatever the target does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.fault import CannotInject, Sighting, Undo
from chaos.faults.grips import toxics
from chaos.faults.grips.grip import ANSWER_S, Grip, grips_in
from chaos.faults.grips.one_toxic import OneToxic, Toxic
from chaos.faults.grips.replies import told
from chaos.faults.grips.requests import METRICS
from chaos.inventory import Target
from chaos.ports import Host, HttpReply


@dataclass(frozen=True)
class MetricsFreeze(OneToxic):
    """Serves a kept /metrics page in the fault proxy before a target."""

    kind: ClassVar[str] = "metrics_freeze"
    summary: ClassVar[str] = "The target's /metrics stand still for its callers, with status 200 and old values."
    fidelity: ClassVar[str] = "HTTP"
    observer: ClassVar[str] = (
        "two pages through the edge are the same and are not the one that the observer reads directly, which moves"
    )

    def toxic(self) -> Toxic:
        """Whose page is filled in when the time has come."""
        return Toxic("http_page", {"match_path": METRICS})

    def obstacles(self, targets: tuple[Target, ...], /) -> tuple[str, ...]:
        """A target must speak HTTP."""
        return tuple(f"{t.name}: it speaks {t.wire}, not HTTP" for t in targets if t.wire != "http")

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Keep each target's page of this moment and serve it from now on. Raises CannotInject."""
        del targets
        toxic = self.toxic()
        for record, grip in zip(undo["targets"], grips_in(undo), strict=True):
            page = await _page(grip.address, undo, host)
            if page.status != 200:
                raise CannotInject(f"{grip.name}: it has no {METRICS} page to keep: {told(page)}")
            kept = {"page": page.body, "content_type": page.headers.get("content-type")}
            await toxics.put({**undo, "targets": [record]}, toxic.kind, toxic.share, {**toxic.attributes, **kept}, host)

    async def seen_harmed(self, grip: Grip, undo: Undo, host: Host) -> Sighting:
        """Two pages through the edge are the same, and the true one is another."""
        first, true = await _page(grip.via or grip.address, undo, host), await _page(grip.address, undo, host)
        second = await _page(grip.via or grip.address, undo, host)
        still, old = first.body == second.body, true.status == 200 and first.body != true.body
        witness = await toxics.witness(grip, undo["toxic"], host)
        return Sighting(
            first.status == 200 and still and old and witness.seen,
            f"{grip.name}: two pages through {grip.via} are {'the same' if still else 'different'}, the true one is "
            f"{'another' if old else 'no other'}; {witness.what}",
        )

    async def seen_well(self, grip: Grip, undo: Undo, host: Host) -> Sighting:
        """There is a page through the edge."""
        via = await _page(grip.via or grip.address, undo, host)
        return Sighting(via.status == 200, f"{METRICS} through {grip.via} brings {told(via)[:40]}")


async def _page(address: str, undo: Undo, host: Host) -> HttpReply:
    return await host.http.call("GET", toxics.observing(address, METRICS, undo["toxic"]), timeout_s=ANSWER_S)
