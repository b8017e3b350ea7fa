"""Looks at a fault in force, again and again until it is seen: each bounded, none begun once the revert has.

A look that sees the harm only in the remains of a revert would prove that it was there before; one that begins after
the revert would prove nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from chaos.faults.fault import CannotInject, Sighting, Undo
from chaos.plan.plan import PlannedFault
from chaos.ports import Host

LOOK_EVERY_S = 0.05


@dataclass(frozen=True)
class Look:
    """The look that decided, and how long it took: what it saw was there when it began, or a moment later."""

    sighting: Sighting
    took_s: float


async def look_until(
    planned: PlannedFault, undo: Undo, host: Host, *, within_s: float, over: Callable[[], bool]
) -> Look:
    """Look until the harm is seen, the time is up, or the fault is `over`. Looks once at least; never raises."""
    give_up = host.clock.now() + within_s
    while True:
        began = host.clock.now()
        sighting = await _one_look(planned, undo, host, max(LOOK_EVERY_S, give_up - began))
        look = Look(sighting, host.clock.now() - began)
        if sighting.seen or over() or host.clock.now() >= give_up:
            return look
        await host.clock.sleep_until(host.clock.now() + LOOK_EVERY_S)
        if over():
            return look


async def _one_look(planned: PlannedFault, undo: Undo, host: Host, within_s: float) -> Sighting:
    """An observer that hangs or breaks has seen nothing, and says so."""
    try:
        async with asyncio.timeout(within_s):
            return await planned.fault.confirm(planned.targets, undo, host)
    except TimeoutError:
        return Sighting(seen=False, what=f"the observer had no answer within {within_s:.1f}s")
    except CannotInject as reason:
        return Sighting(seen=False, what=str(reason))
    except Exception as failure:  # noqa: BLE001  an observer's failure is evidence, not a crash
        return Sighting(seen=False, what=f"the observer failed: {type(failure).__name__}: {failure}")
