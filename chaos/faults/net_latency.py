"""The edge to a target becomes slow: every chunk of bytes in one direction is held back for a while."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import ClassVar, Literal

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips.edges import by_caller
from chaos.faults.grips.grip import ANSWER_S, Grip, grips_in, must_answer, on_edges, without_caller, without_proxy
from chaos.faults.grips.marks import new_mark
from chaos.faults.grips.sightings import every_one
from chaos.faults.grips.together import all_of
from chaos.inventory import Target
from chaos.ports import Host, Need
from chaos.settings import setting
from chaos.units import Duration

_LOOKS = 3
_ONE_LOOK_S = 0.25  # a delay this long cannot be mistaken for a busy machine


@dataclass(frozen=True)
class NetLatency:
    """Adds delay on the fault proxy's listener before a target."""

    kind: ClassVar[str] = "net_latency"
    summary: ClassVar[str] = "Bytes to or from the target are delayed by a fixed time, with jitter."
    fidelity: ClassVar[str] = "network"
    observer: ClassVar[str] = "the observer's own round trip through the edge takes longer than a direct one"
    needs: ClassVar[tuple[Need, ...]] = ()

    # A shorter delay drowns in what the edge itself adds, so it could be neither seen nor missed.
    latency: Duration = setting("delay of every chunk of bytes", least=0.01, most=600)
    jitter: Duration = setting("the delay varies evenly by up to this much, both ways", default=Duration(0), least=0)
    direction: Literal["downstream", "upstream"] = setting(
        "downstream delays what the target answers, upstream what it is asked", default="downstream"
    )
    from_: str | None = by_caller()

    def problems(self, targets: tuple[Target, ...]) -> tuple[str, ...]:
        """A target needs a proxy before it, and no delay may come out negative."""
        found = (*without_proxy(targets), *without_caller(targets, self.from_))
        if self.jitter > self.latency:
            found = (f"jitter {self.jitter} is more than the latency {self.latency}; delays cannot be negative", *found)
        return found

    async def prepare(self, targets: tuple[Target, ...], host: Host) -> Undo:
        """Choose the toxic's name. Raises CannotInject for a dead target or an unknown listener."""
        grips = on_edges(targets, self.from_)
        for target in targets:
            await must_answer(target, host)
        for grip in grips:
            if grip.proxy:
                await grip.proxy.listener(host)
        return {
            "toxic": new_mark(self.kind),
            "latency_s": float(self.latency),
            "jitter_s": float(self.jitter),
            "targets": [grip.to_json() for grip in grips],
        }

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        """Add the toxic to each edge. Raises CannotInject."""
        del targets
        toxic = {
            "name": undo["toxic"],
            "type": "latency",
            "stream": self.direction,
            "toxicity": 1.0,
            "attributes": {"latency": round(self.latency * 1000), "jitter": round(self.jitter * 1000)},
        }
        for grip in grips_in(undo):
            if grip.proxy:
                await grip.proxy.add_toxic(toxic, host)

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """Each edge adds at least half of the delay to a round trip of the observer's own."""
        del targets
        return await every_one(_seen_slow(grip, undo, host) for grip in grips_in(undo))

    async def revert(self, undo: Undo, host: Host) -> None:
        """Remove the toxic from each edge. Raises RevertFailed."""
        await all_of(grip.proxy.remove_toxic(undo["toxic"], host) for grip in grips_in(undo) if grip.proxy)

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        """The toxic is absent and each edge is as quick as it was."""
        del targets
        return await every_one(_seen_quick(grip, undo, host) for grip in grips_in(undo))


async def _seen_slow(grip: Grip, undo: Undo, host: Host) -> Sighting:
    added_s = await _added_s(grip, undo, host)
    if added_s is None:
        return Sighting(seen=False, what=f"{grip.name}: no answer at {grip.via} or {grip.address} to compare")
    return Sighting(
        added_s >= undo["latency_s"] / 2,
        f"{grip.name}: a round trip through {grip.via} takes {added_s * 1000:.1f} ms more than to {grip.address}",
    )


async def _seen_quick(grip: Grip, undo: Undo, host: Host) -> Sighting:
    listener = await grip.proxy.look(host) if grip.proxy else None
    if listener is not None and undo["toxic"] in listener.toxics:
        return Sighting(seen=False, what=f"{grip.name}: toxic {undo['toxic']} is still there")
    added_s = await _added_s(grip, undo, host)
    if added_s is not None and added_s < undo["latency_s"] / 2:
        return Sighting(seen=True, what=f"{grip.name}: toxic absent, {added_s * 1000:.1f} ms added by the edge")
    if listener is not None and listener.toxics:
        others = ", ".join(listener.toxics)
        return Sighting(seen=True, what=f"{grip.name}: toxic absent; other faults still act on the edge: {others}")
    what = "no answer to compare" if added_s is None else f"still {added_s * 1000:.1f} ms added by the edge"
    return Sighting(seen=False, what=f"{grip.name}: toxic absent, but {what}")


async def _added_s(grip: Grip, undo: Undo, host: Host) -> float | None:
    """What the edge adds to a round trip, in seconds; None when one side does not answer.

    Noise only makes a trip longer, so the shortest of a few is the truth. Under wide jitter a short one may be luck,
    so there it is the middle one.
    """
    latency_s, jitter_s = undo["latency_s"], undo["jitter_s"]
    looks = 1 if latency_s >= _ONE_LOOK_S and not jitter_s else _LOOKS
    patience_s = ANSWER_S + 2 * (latency_s + jitter_s)
    direct = [await host.network.round_trip(grip.address, grip.wire, ANSWER_S) for _ in range(looks)]
    edge = [await host.network.round_trip(grip.via or grip.address, grip.wire, patience_s) for _ in range(looks)]
    direct_s, edge_s = [t for t in direct if t is not None], [t for t in edge if t is not None]
    if len(direct_s) < looks or len(edge_s) < looks:
        return None
    typical = statistics.median if jitter_s > latency_s / 2 else min
    return typical(edge_s) - min(direct_s)
