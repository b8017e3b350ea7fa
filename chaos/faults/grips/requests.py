"""One request of the observer's own through the edge beside a direct one: what came, and after how long.

The toxics that know HTTP always hit a request that names them, so one request is enough, whatever share is hit.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips import toxics
from chaos.faults.grips.grip import ANSWER_S, Grip
from chaos.faults.grips.one_toxic import OneToxic
from chaos.inventory import Target
from chaos.ports import Host, HttpReply

METRICS = "/metrics"
"""A question that every part answers with a body."""


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
        via, direct = await self._both(grip, undo, host)
        witness = await toxics.witness(grip, undo["toxic"], host)
        return Sighting(
            direct.reply.status == 200 and self.harmed(via, direct, undo) and witness.seen,
            f"{grip.name}: the observer's request through {grip.via} got {via}, a direct one {direct}; {witness.what}",
        )

    async def seen_well(self, grip: Grip, undo: Undo, host: Host) -> Sighting:
        """The observer's answer through the edge is as good as a direct one."""
        via, direct = await self._both(grip, undo, host)
        well = via.reply.status == 200 and not self.harmed(via, direct, undo)
        return Sighting(well, f"the observer's request through {grip.via} got {via}")

    async def _both(self, grip: Grip, undo: Undo, host: Host) -> tuple[Heard, Heard]:
        direct = await self._ask(grip.address, undo, ANSWER_S, host)
        return await self._ask(grip.via or grip.address, undo, self.patience_s(undo), host), direct

    async def _ask(self, address: str, undo: Undo, timeout_s: float, host: Host) -> Heard:
        began = host.clock.now()
        url = toxics.observing(address, self.question, undo["toxic"])
        reply = await host.http.call("GET", url, timeout_s=timeout_s)
        return Heard(reply, host.clock.now() - began)
