"""One revert, the same for the runner, the watchdog and `brownout recover`: tried again, then watched until it is seen.

A call that was under way when its sender gave up or died may reach its server after the revert. So while the harm is
not seen to be gone it is reverted again, which is harmless: reverts take away only their own marks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from chaos.faults.fault import Fault, Sighting, Undo
from chaos.ports import Host

LOOK_EVERY_S = 0.02
LOOK_WITHIN_S = 2.0
REVERT_WITHIN_S = 5.0
AGAIN_EVERY_S = 0.5


def pauses(total_s: float, *, first_s: float = 0.1, longest_s: float = 2.0) -> Iterator[float]:
    """Pauses between tries in seconds: doubling up to `longest_s`, about `total_s` in all."""
    spent_s, pause_s = 0.0, first_s
    while spent_s + pause_s <= total_s + 1e-9:
        yield pause_s
        spent_s += pause_s
        pause_s = min(2 * pause_s, longest_s)


async def revert_once(fault: Fault, undo: Undo, host: Host) -> str | None:
    """One try; None when it went well, else what went wrong. Never raises."""
    try:
        async with asyncio.timeout(REVERT_WITHIN_S):
            await fault.revert(undo, host)
    except TimeoutError:
        return f"the revert did not end within {REVERT_WITHIN_S:.0f}s"
    except Exception as failure:  # noqa: BLE001  whatever is wrong with one fault, it is told and the others are reverted
        return str(failure) or type(failure).__name__
    return None


async def until_gone(fault: Fault, undo: Undo, host: Host, within_s: float) -> Sighting:
    """Look until the harm is seen to be gone; while it is not, revert again. Never raises."""
    now = host.clock.now()
    give_up, again = now + within_s, now + AGAIN_EVERY_S
    while True:
        sighting = await _look(fault, undo, host)
        now = host.clock.now()
        if sighting.seen or now >= give_up:
            return sighting
        if now >= again:
            again = now + AGAIN_EVERY_S
            await revert_once(fault, undo, host)
        await host.clock.sleep_until(host.clock.now() + LOOK_EVERY_S)


async def _look(fault: Fault, undo: Undo, host: Host) -> Sighting:
    try:
        async with asyncio.timeout(LOOK_WITHIN_S):
            return await fault.confirm_gone((), undo, host)
    except TimeoutError:
        return Sighting(seen=False, what=f"the observer had no answer within {LOOK_WITHIN_S:.0f}s")
    except Exception as failure:  # noqa: BLE001  an observer that breaks has seen nothing, and says so
        return Sighting(seen=False, what=f"the observer failed: {failure!r}")
