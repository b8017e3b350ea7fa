"""What the faults' observers have in common: a target that is back, many sightings as one, and patience."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Any

from chaos.faults.fault import Sighting
from chaos.faults.grips import supervisor
from chaos.faults.grips.grip import ANSWER_S, Grip
from chaos.ports import Clock, Host


def every(sightings: Sequence[Sighting]) -> Sighting:
    """Seen when all are; tells what was seen, or only what was not."""
    missed = [sighting for sighting in sightings if not sighting.seen]
    return Sighting(not missed and bool(sightings), "; ".join(s.what for s in missed or sightings) or "no target")


async def every_one(looks: Iterable[Coroutine[Any, Any, Sighting]]) -> Sighting:
    """Look at all targets at the same time: a slow look at one must not delay the look at the next."""
    return every(await asyncio.gather(*looks))


async def seen_back(grip: Grip, at: str, mark: str | None, host: Host) -> Sighting:
    """Does the target answer at this address? If not: is our own mark gone, and only other faults still in the way?

    A port may answer before the target can serve (a database that still recovers), so its supervisor must agree. A
    target that answers while our mark is left would stay dead at its next death: that is not gone.
    """
    answers = await host.network.round_trip(at, grip.wire, ANSWER_S) is not None
    record = await supervisor.look(grip.supervisor, grip.name, host) if grip.supervisor else None
    listener = await grip.proxy.look(host) if grip.proxy and at == grip.via else None
    in_the_way = {*supervisor.marks_in(record), *(listener.down_marks if listener else ())}
    if mark in in_the_way:
        return Sighting(seen=False, what=f"{grip.name}: the mark {mark} is still there")
    if answers:
        starting = record is not None and record.get("state") == "starting"
        return Sighting(not starting, f"{grip.name}: {at} answers" + (", but it is still starting" if starting else ""))
    if in_the_way:
        others = ", ".join(sorted(in_the_way))
        return Sighting(seen=True, what=f"{grip.name}: reverted; other faults still keep {at} down: {others}")
    return Sighting(seen=False, what=f"{grip.name}: {at} does not answer")


async def look_until_seen(
    look: Callable[[], Awaitable[Sighting]], clock: Clock, *, within_s: float, every_s: float = 0.02
) -> Sighting:
    """Look until it is seen or `within_s` have passed; the last look is the answer. Looks once at least."""
    deadline = clock.now() + within_s
    while True:
        sighting = await look()
        if sighting.seen or clock.now() >= deadline:
            return sighting
        await clock.sleep_until(clock.now() + every_s)
