"""The link to the target carries few bytes a second: packets queue before it, and what finds the queue full is lost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from chaos.faults.fault import CannotInject, Undo
from chaos.faults.grips.grip import Grip
from chaos.faults.grips.packets import PacketFault, seeded, which_way
from chaos.faults.grips.rules import Way
from chaos.ports import Host, Segments
from chaos.settings import setting
from chaos.units import Size

_WATCHED_S = 0.4  # so long the observer's talk lasts over the link at least
_TALK_S = 3.0


@dataclass(frozen=True)
class PacketRate(PacketFault):
    """Lets packets pass one after the other, each for as long as its bytes need."""

    kind: ClassVar[str] = "packet_rate"
    summary: ClassVar[str] = "All packets to and from the target share a link of limited rate with a queue before it."
    observer: ClassVar[str] = "the observer's own direct talk lasts longer than before, by the rate"

    # What is wider than this is no harm that a talk of fair length could show.
    rate: Size = setting("bytes per second each way, headers included, for all connections", least=1000, most=1_000_000)
    queue: Size = setting("bytes that wait for the link at most", default=Size(262_144), least=4096, most=16_777_216)
    direction: Way = which_way()
    seed: int = seeded()

    def link(self) -> tuple[str, Mapping[str, Any]]:
        """A line with a tail-drop queue."""
        return "narrow", {"rate": float(self.rate), "queue": int(self.queue)}

    async def learn(self, grips: tuple[Grip, ...], host: Host, /) -> Mapping[str, Any]:
        """How long a talk lasts that shows the rate. Raises CannotInject."""
        asked = max(1, round(self.rate * _WATCHED_S))
        talks = [await host.network.segments(grip.address, grip.wire, asked, _TALK_S) for grip in grips]
        if any(talk.talk.ending != "whole" for talk in talks):
            names = ", ".join(grip.name for grip in grips)
            raise CannotInject(f"{names}: no whole talk of {asked} bytes to compare with")
        slow_s = max(talk.talk.took_s for talk in talks) + _WATCHED_S / 2
        return {"asked": asked, "slow_s": slow_s, "patience_s": slow_s + 2 * _WATCHED_S}

    def harmed(self, talk: Segments, undo: Undo) -> bool:
        """It takes half of what the bytes need at the rate longer, or does not end."""
        return talk.rtt_s is not None and talk.talk.took_s >= undo["slow_s"]
