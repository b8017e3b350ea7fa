"""Packets to or from the target arrive later, those that open a connection too."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from chaos.faults.fault import CannotInject, Undo
from chaos.faults.grips.grip import ANSWER_S, Grip
from chaos.faults.grips.packets import PacketFault, seeded, which_way
from chaos.faults.grips.rules import Way
from chaos.ports import Host, Segments
from chaos.settings import setting
from chaos.units import Duration


@dataclass(frozen=True)
class PacketDelay(PacketFault):
    """Holds every packet back for a while right before the target's socket."""

    kind: ClassVar[str] = "packet_delay"
    summary: ClassVar[str] = "Every packet to and from the target is delayed by a fixed time, with jitter, in order."
    observer: ClassVar[str] = "the handshake of the observer's own direct connection takes longer than before"

    # A shorter delay drowns in the time that a busy machine needs to wake the process which lets the packets go.
    delay: Duration = setting("delay of every packet, each way", least=0.01, most=10)
    jitter: Duration = setting("the delay varies evenly by up to this much, both ways", default=Duration(0), least=0)
    direction: Way = which_way()
    seed: int = seeded()

    def link(self) -> tuple[str, Mapping[str, Any]]:
        """Both in seconds."""
        return "slow", {"delay_s": float(self.delay), "jitter_s": float(self.jitter)}

    def trouble(self) -> tuple[str, ...]:
        """No delay may come out negative."""
        if self.jitter <= self.delay:
            return ()
        return (f"jitter {self.jitter} is more than the delay {self.delay}; delays cannot be negative",)

    async def learn(self, grips: tuple[Grip, ...], host: Host, /) -> Mapping[str, Any]:
        """How quick a handshake is. Raises CannotInject."""
        usual_s = [await _handshake_s(grip, host) for grip in grips]
        ways = 2 if self.direction == "both" else 1
        patience_s = ANSWER_S + 2 * (float(self.delay) + float(self.jitter)) * ways
        slow_s = max(usual_s) + float(self.delay) * ways / 2
        return {"asked": 0, "slow_s": slow_s, "patience_s": patience_s}

    def harmed(self, talk: Segments, undo: Undo) -> bool:
        """Half of the delay is more than a busy machine adds between two kernels."""
        return talk.rtt_s is not None and talk.rtt_s >= undo["slow_s"]


async def _handshake_s(grip: Grip, host: Host) -> float:
    """The middle one of a few."""
    seen = [(await host.network.segments(grip.address, grip.wire, 0, ANSWER_S)).rtt_s for _ in range(3)]
    if None in seen:
        raise CannotInject(f"{grip.name}: no connection to {grip.address} to compare with")
    return statistics.median(rtt_s for rtt_s in seen if rtt_s is not None)
