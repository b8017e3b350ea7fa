"""No row of evidence stays in memory for longer than a moment: a kill loses at most that much."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from chaos.ports import Clock


async def keep_flushed(clock: Clock, flushes: Iterable[Callable[[], None]], period_s: float = 0.15) -> None:
    """Call each flush every `period_s` until cancelled, so that no row stays in memory longer. Raises what a flush
    raises.
    """
    every, due = tuple(flushes), clock.now()
    while True:
        due = max(due + period_s, clock.now())
        await clock.sleep_until(due)
        for flush in every:
            flush()
