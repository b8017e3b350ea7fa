"""Harm that is one toxic on the edge of each target: put there, taken away by name, and its count of what it hit.

The toxics that know HTTP always hit a request that names them in its query. So an observer sees the harm with one
request of its own, whatever share of the others is hit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from chaos.faults.fault import Sighting, Undo
from chaos.faults.grips.grip import Grip, grips_in, must_answer, on_edges
from chaos.faults.grips.marks import new_mark
from chaos.faults.grips.together import all_of
from chaos.inventory import Target
from chaos.ports import Host

TOXIPROXYS = frozenset({"bandwidth", "latency", "limit_data", "noop", "reset_peer", "slicer", "slow_close", "timeout"})
"""The kinds of toxics that every Toxiproxy has; all others are our own proxy's."""


async def prepared(kind: str, targets: tuple[Target, ...], host: Host, *, caller: str | None = None) -> dict[str, Any]:
    """An undo with the name of the toxic to be, on all edges or those of one role of callers. Raises CannotInject for a
    dead target or an unknown listener.
    """
    grips = on_edges(targets, caller)
    for target in targets:
        await must_answer(target, host)
    for grip in grips:
        if grip.proxy:
            await grip.proxy.listener(host)
    return {"toxic": new_mark(kind), "targets": [grip.to_json() for grip in grips]}


async def put(
    undo: Undo,
    kind: str,
    share: float,
    attributes: Mapping[str, Any],
    host: Host,
    *,
    direction: str = "downstream",
) -> None:
    """Add the toxic to each edge. Raises CannotInject."""
    toxic = {
        "name": undo["toxic"],
        "type": kind,
        "stream": direction,
        "toxicity": share,
        "attributes": {name: value for name, value in attributes.items() if value is not None},
    }
    for grip in grips_in(undo):
        if grip.proxy:
            await grip.proxy.add_toxic(toxic, host)


async def take_away(undo: Undo, host: Host) -> None:
    """Remove the toxic from each edge. Raises RevertFailed."""
    await all_of(grip.proxy.remove_toxic(undo["toxic"], host) for grip in grips_in(undo) if grip.proxy)


def unknown_to(targets: tuple[Target, ...], kind: str) -> tuple[str, ...]:
    """Why a toxic cannot be had: a sentence for each target before which a Toxiproxy stands that lacks the kind."""
    return tuple(
        f"{t.name}: the proxy before it is a Toxiproxy, which has no toxic `{kind}`; run without --proxy, "
        "or choose a fault that begins with net_"
        for t in targets
        if kind not in TOXIPROXYS and t.handles.get("proxy", {}).get("kind") == "toxiproxy"
    )


async def witness(grip: Grip, toxic: str, host: Host) -> Sighting:
    """What the proxy says: has the toxic touched anything? A Toxiproxy tells only whether it is there."""
    hit = await hits(grip, toxic, host)
    if hit is not None:
        return Sighting(hit > 0, f"the toxic has hit {hit} requests or connections")
    listener = await grip.proxy.look(host) if grip.proxy else None
    there = listener is not None and toxic in listener.toxics
    return Sighting(there, f"the proxy counts no hits; the toxic is {'there' if there else 'absent'}")


async def hits(grip: Grip, toxic: str, host: Host) -> int | None:
    """How many requests the toxic has harmed, or connections if it knows no requests, as the proxy counts them.

    0 when there is no such toxic, None when the proxy does not count: Toxiproxy does not.
    """
    if grip.proxy is None:
        return 0
    counts = await grip.proxy.counts(host)
    if counts is None:
        return None
    mine = counts.get(toxic, {})
    return int(mine.get("requests", 0) or mine.get("connections", 0))


def observing(address: str, route: str, toxic: str) -> str:
    """The URL of an observer's request that the toxic hits if it is there."""
    return f"http://{address}{route}?brownout-observer={quote(toxic)}"


async def seen_absent(grip: Grip, toxic: str, works: Sighting, host: Host) -> Sighting:
    """Is the toxic gone, and does the edge work again but for other faults on it?"""
    listener = await grip.proxy.look(host) if grip.proxy else None
    if listener is not None and toxic in listener.toxics:
        return Sighting(seen=False, what=f"{grip.name}: toxic {toxic} is still there")
    if works.seen or listener is None or not listener.toxics:
        return Sighting(works.seen, f"{grip.name}: toxic absent, {works.what}")
    others = ", ".join(listener.toxics)
    return Sighting(seen=True, what=f"{grip.name}: toxic absent; other faults still act on the edge: {others}")
