"""Faults on the packets to and from one port: a bad link right before the target, below TCP. Their verbs stand here.

    caller ─► fault proxy ─► the target's own port ── bad link (rule ─► packet queue ─► saboteur) ── its socket

A fault says which link it is (`link`) and how a talk of the observer's own looks over it (`harmed`). The observer talks
to the target's own port in small segments and reads what TCP counts at its end; it never asks the saboteur. That our
rule has handed packets over is the second witness.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from chaos.faults.fault import CannotInject, Sighting, Undo
from chaos.faults.grips import rules
from chaos.faults.grips.grip import Grip, grips_in, must_answer
from chaos.faults.grips.needs import PACKET_QUEUES, ROOT, tool
from chaos.faults.grips.rules import Edge, Way
from chaos.faults.grips.saboteur import SaboteurFault
from chaos.faults.grips.sightings import every_one
from chaos.faults.grips.together import all_of
from chaos.inventory import Target
from chaos.ports import Host, Need, Segments
from chaos.settings import setting
from chaos.units import Ratio

_PATIENCE_S = 0.6  # TCP waits for a fifth of a second, then for two, before it sends again
_MORE_S = 1.5  # a busy target may be slow in a talk that must come to its end
_CERTAIN = 0.001  # chance to see nothing where there is something
_LONGEST_S = 1.8
_ASKED = 4096  # a few dozen segments, most of them in flight together; a long page brings some hundred
_USUAL = {"asked": _ASKED, "packets": 1, "patience_s": _PATIENCE_S}
_TAKEN = "refuses packet queue"


def which_way() -> Way:
    """The setting `direction`."""
    doc = "upstream harms packets to the target, downstream those from it, acknowledgements too; both harms each way"
    chosen: Way = setting(doc, default="both")
    return chosen


def seeded() -> int:
    """The setting `seed`."""
    chosen: int = setting("seed of the dice: the same packets fare alike", default=1, least=0)
    return chosen


def packets_to_see(share: float) -> int:
    """So many packets must pass until a harm of this share of them has hit one almost certainly."""
    return 1 if share >= 1 else math.ceil(math.log(_CERTAIN) / math.log(1 - share))


class PacketFault(SaboteurFault):
    """Base of the faults; they are frozen dataclasses of settings with `direction` and `seed`."""

    program: ClassVar[str] = "packets"
    fidelity: ClassVar[str] = "network"
    needs: ClassVar[tuple[Need, ...]] = (ROOT, tool("iptables"), tool("nsenter", "util-linux"), PACKET_QUEUES)
    direction: Way
    seed: int

    @abstractmethod
    def link(self) -> tuple[str, Mapping[str, Any]]:
        """The link's name and settings, as chaos/saboteurs/netfilter/links.py knows them."""

    @abstractmethod
    def harmed(self, talk: Segments, undo: Undo) -> bool:
        """Does a talk over the link look so? Looks at the undo alone."""

    def trouble(self) -> tuple[str, ...]:
        """What is wrong with the settings."""
        return ()

    async def learn(self, _grips: tuple[Grip, ...], _host: Host, /) -> Mapping[str, Any]:
        """What `harmed` must know, and what differs from the usual talk: bytes `asked` for, `packets`, `patience_s`."""
        return {}

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target must live on this machine, where its packets can be reached."""
        absent = tuple(f"{t.name}: no process of it is known here (`pids` is empty)" for t in targets if not t.pids)
        return (*self.trouble(), *absent)

    async def expected(self, targets: tuple[Target, ...], host: Host, /) -> Mapping[str, Any]:
        """Where the packets pass, and how a talk goes before the harm. Raises CannotInject."""
        for target in targets:
            await must_answer(target, host)
        grips = tuple(Grip.of(target) for target in targets)
        edges = [
            await rules.edge_to(target.name, number, target.handles.get("inside", target.address), target.pids[0], host)
            for number, target in enumerate(targets)
        ]
        return {
            "targets": [grip.to_json() for grip in grips],
            "edges": [edge.to_json() for edge in edges],
            "way": self.direction,
            **_USUAL,
            **await self.learn(grips, host),
        }

    def orders(self, undo: Undo) -> Mapping[str, Any]:
        """One queue for each edge."""
        (name, given), place = self.link(), undo["place"]
        edges = [
            {"inside": edge.process if edge.namespace else None, "queue": edge.queue(place)} for edge in edges_in(undo)
        ]
        return {"link": name, "given": given, "seed": self.seed, "mark": 1 << place, "edges": edges}

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Somebody reads the queues before packets come. Raises CannotInject."""
        edges = edges_in(undo)
        for place in await rules.free_places(edges, host):
            try:
                await super().inject(targets, {**undo, "place": place}, host)
            except CannotInject as refusal:
                if _TAKEN not in str(refusal):
                    raise
                continue  # by a fault that began at the same time
            for edge in edges:
                await rules.put(edge, self.direction, place, undo["mark"], host)
            return
        raise CannotInject(f"{self.kind}: {len(rules.PLACES)} packet faults are in force here, and no more can be")

    async def clean(self, undo: Undo, host: Host, /) -> None:
        """Remove the rules. Raises RevertFailed."""
        await all_of(rules.take_away(edge, undo["mark"], host) for edge in edges_in(undo))

    async def seen_harmed(self, undo: Undo, host: Host) -> Sighting:
        """At every target the observer's talk is harmed, and our rule has packets."""
        pairs = zip(grips_in(undo), edges_in(undo), strict=True)
        return await every_one(self._harmed_at(grip, edge, undo, host) for grip, edge in pairs)

    async def seen_well(self, undo: Undo, host: Host) -> Sighting:
        """No rule of ours is left, and the observer's talk is as it was before."""
        pairs = zip(grips_in(undo), edges_in(undo), strict=True)
        return await every_one(self._well_at(grip, edge, undo, host) for grip, edge in pairs)

    async def _harmed_at(self, grip: Grip, edge: Edge, undo: Undo, host: Host) -> Sighting:
        if await rules.packets_counted(edge, undo["mark"], host) is None:
            return Sighting(seen=False, what=f"{grip.name}: {_handed(None)}")
        talk = await self._talk_until_harmed(grip, undo, host)
        handed = await rules.packets_counted(edge, undo["mark"], host)
        what = f"{grip.name}: {_told(talk, grip)}; {_handed(handed)}"
        return Sighting(self.harmed(talk, undo) and bool(handed), what)

    async def _talk_until_harmed(self, grip: Grip, undo: Undo, host: Host) -> Segments:
        """Talk again until enough packets have passed; the last talk."""
        give_up, passed = host.clock.now() + _LONGEST_S, 0
        while True:
            talk = await host.network.segments(grip.address, grip.wire, undo["asked"], undo["patience_s"])
            passed += talk.sent + talk.received + 1
            if self.harmed(talk, undo) or passed >= undo["packets"] or host.clock.now() >= give_up:
                return talk

    async def _well_at(self, grip: Grip, edge: Edge, undo: Undo, host: Host) -> Sighting:
        handed = await rules.packets_counted(edge, undo["mark"], host)
        if handed is not None:
            return Sighting(seen=False, what=f"{grip.name}: {_handed(handed)}")
        talk = await host.network.segments(grip.address, grip.wire, undo["asked"], undo["patience_s"] + _MORE_S)
        answered = talk.rtt_s is not None and (talk.talk.ending == "whole" or not undo["asked"])
        if answered and not self.harmed(talk, undo):
            return Sighting(seen=True, what=f"{grip.name}: no rule of ours; {_told(talk, grip)}")
        others = await rules.other_marks(edge, undo["mark"], host)
        if others:
            named = ", ".join(others)
            return Sighting(seen=True, what=f"{grip.name}: no rule of ours; other faults still act on it: {named}")
        return Sighting(seen=False, what=f"{grip.name}: no rule of ours, but {_told(talk, grip)}")


class ShareFault(PacketFault):
    """Base of the faults that hit a share of the packets, each on its own."""

    share: Ratio

    async def learn(self, _grips: tuple[Grip, ...], _host: Host, /) -> Mapping[str, Any]:
        """How many packets must pass."""
        return {"packets": packets_to_see(float(self.share))}


def edges_in(undo: Undo) -> tuple[Edge, ...]:
    """The edges that `prepare` stored."""
    return tuple(Edge.from_json(record) for record in undo["edges"])


def _told(talk: Segments, grip: Grip) -> str:
    """A talk in a few words: what is not nothing."""
    if talk.rtt_s is None:
        return f"no connection to {grip.address} in time, {talk.resent} packets sent again"
    counted = {
        "sent": talk.sent,
        "sent again": talk.resent,
        "copied": talk.copied,
        "overtaken": talk.reordered,
        "received": talk.received,
        "received early": talk.early,
        "received garbled": talk.garbled,
        "received again": talk.again,
    }
    numbers = ", ".join(f"{number} {what}" for what, number in counted.items() if number)
    trip = f"a round trip to {grip.address} takes {talk.rtt_s * 1000:.1f} ms"
    lasted = "" if talk.talk.ending == "none" else f", a talk {talk.talk.took_s * 1000:.0f} ms ({talk.talk.ending})"
    return trip + lasted + (f"; segments: {numbers}" if numbers else "")


def _handed(packets: int | None) -> str:
    return "no rule of ours is there" if packets is None else f"our rule has handed over {packets} packets"
