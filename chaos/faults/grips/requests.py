"""One request of the observer's own through the edge beside a direct one: what came, and after how long.

The toxics that know HTTP always hit a request that names them, so one request is enough, whatever share is hit.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips import toxics
from chaos.faults.grips.grip import ANSWER_S, Grip
from chaos.faults.grips.one_toxic import OneToxic
from chaos.inventory import Target
from chaos.ports import Host, HttpReply
from chaos.units import Duration

METRICS = "/metrics"
"""A question that every part answers with a body."""
_ENOUGH_S = 1.0  # an answer that is later than this need not be waited for


@dataclass(frozen=True)
class Heard:
    """A reply, or its lack, after `took_s`."""

    reply: HttpReply
    took_s: float

    def __str__(self) -> str:
        """In a few words."""
        what = f"status {self.reply.status}" if self.reply.status else self.reply.error or "nothing"
        return f"{what} after {self.took_s * 1000:.0f} ms"


class RequestFault(OneToxic):
    """Base of the faults on single requests. `question` is the path that the observer asks for."""

    question: ClassVar[str] = "/ping"

    @abstractmethod
    def harmed(self, via: Heard, direct: Heard, undo: Undo) -> bool:
        """Is this what the harm looks like, beside a direct answer with status 200?"""

    def patience_s(self, undo: Undo) -> float:
        """How long the observer waits for an answer through the edge."""
        del undo
        return ANSWER_S

    def obstacles(self, targets: tuple[Target, ...], /) -> tuple[str, ...]:
        """A target must speak HTTP."""
        return tuple(f"{t.name}: it speaks {t.wire}, not HTTP" for t in targets if t.wire != "http")

    async def seen_harmed(self, grip: Grip, undo: Undo, host: Host) -> Sighting:
        """The observer's answer through the edge is harmed, a direct one is not."""
        via, direct = await self.both(grip, undo, host)
        witness = await toxics.witness(grip, undo["toxic"], host)
        return Sighting(
            direct.reply.status == 200 and self.harmed(via, direct, undo) and witness.seen,
            f"{grip.name}: the observer's request through {grip.via} got {via}, a direct one {direct}; {witness.what}",
        )

    async def seen_well(self, grip: Grip, undo: Undo, host: Host) -> Sighting:
        """The observer's answer through the edge is as good as a direct one."""
        via, direct = await self.both(grip, undo, host)
        well = via.reply.status == 200 and not self.harmed(via, direct, undo)
        return Sighting(well, f"the observer's request through {grip.via} got {via}")

    async def ask(self, url: str, undo: Undo, timeout_s: float, host: Host) -> HttpReply:
        """The observer's request; the URL names the toxic."""
        del undo
        return await host.http.call("GET", url, timeout_s=timeout_s)

    async def both(self, grip: Grip, undo: Undo, host: Host) -> tuple[Heard, Heard]:
        direct = await self._heard(grip.address, undo, ANSWER_S, host)
        return await self._heard(grip.via or grip.address, undo, self.patience_s(undo), host), direct

    async def _heard(self, address: str, undo: Undo, timeout_s: float, host: Host) -> Heard:
        began = host.clock.now()
        reply = await self.ask(toxics.observing(address, self.question, undo["toxic"]), undo, timeout_s, host)
        return Heard(reply, host.clock.now() - began)


class LateAnswers(RequestFault):
    """Base of the faults that hold answers back."""

    delay: Duration

    async def expected(self, _targets: tuple[Target, ...], _host: Host, /) -> Mapping[str, Any]:
        """How much later an answer is at least: half of the delay, or enough."""
        return {"later_s": min(float(self.delay) / 2, _ENOUGH_S)}

    def patience_s(self, undo: Undo) -> float:
        """Long enough to tell a late answer from one in time."""
        return ANSWER_S + float(undo["later_s"])

    def harmed(self, via: Heard, direct: Heard, undo: Undo) -> bool:
        """Late; one that has not come yet is late too."""
        came = via.reply.status == 200 or (via.reply.error or "").startswith("timeout")
        return came and via.took_s - direct.took_s >= undo["later_s"]
