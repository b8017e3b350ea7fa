"""Two tries at once, the second one only if the first is late: the first to succeed wins, the other is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def first_to_answer(
    first: Coroutine[Any, Any, T],
    after_s: float,
    second: Callable[[], Coroutine[Any, Any, T] | None],
    discard: Callable[[T], Awaitable[None]],
) -> T:
    """The result of whichever succeeds first. `second` is asked once `first` has been under way for `after_s`, and may
    decline. A result that came too late goes to `discard`. Raises what `first` raised when neither succeeds.
    """
    tasks = [asyncio.create_task(first)]
    winner: asyncio.Task[T] | None = None
    try:
        await asyncio.wait(tasks, timeout=after_s)
        if not tasks[0].done() and (late := second()) is not None:
            tasks.append(asyncio.create_task(late))
        while winner is None:
            winner = next((task for task in tasks if task.done() and task.exception() is None), None)
            waiting = [task for task in tasks if not task.done()]
            if winner is None and not waiting:
                return tasks[0].result()  # raises
            if winner is None:
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        return winner.result()
    finally:
        await _end(tasks, winner, discard)


async def _end(
    tasks: list[asyncio.Task[T]], winner: asyncio.Task[T] | None, discard: Callable[[T], Awaitable[None]]
) -> None:
    losers = [task for task in tasks if task is not winner]
    for task in losers:
        task.cancel()
    for result in await asyncio.gather(*losers, return_exceptions=True):
        if not isinstance(result, BaseException):
            await discard(result)
