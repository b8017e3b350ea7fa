"""The first to succeed wins, and the loser leaves nothing behind."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from target_stack.gateway.hedging import first_to_answer


class Race:
    """Tries that take so long and then give their name, or fail; and what became of them."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self.cancelled: list[str] = []
        self.discarded: list[str] = []

    async def attempt(self, name: str, takes_s: float, *, fails: bool = False) -> str:
        self.began.append(name)
        try:
            await asyncio.sleep(takes_s)
        except asyncio.CancelledError:
            self.cancelled.append(name)
            raise
        if fails:
            raise OSError(name)
        return name

    async def discard(self, name: str) -> None:
        self.discarded.append(name)

    async def run(self, first: Coroutine[Any, Any, str], second: Coroutine[Any, Any, str] | None = None) -> str:
        try:
            return await first_to_answer(first, 1.0, lambda: second, self.discard)
        finally:
            if second is not None:
                second.close()  # one that was never asked would warn


async def test_a_quick_first_try_is_alone() -> None:
    race = Race()
    assert await race.run(race.attempt("a", 0.5), race.attempt("b", 0.5)) == "a"
    assert race.began == ["a"]


async def test_a_late_first_try_is_overtaken_and_cancelled() -> None:
    race = Race()
    assert await race.run(race.attempt("a", 9.0), race.attempt("b", 0.5)) == "b"
    assert race.cancelled == ["a"]


async def test_a_late_first_try_can_still_win() -> None:
    race = Race()
    assert await race.run(race.attempt("a", 1.2), race.attempt("b", 5.0)) == "a"
    assert race.cancelled == ["b"]


async def test_a_failure_of_one_leaves_the_other_its_time() -> None:
    race = Race()
    assert await race.run(race.attempt("a", 1.2, fails=True), race.attempt("b", 5.0)) == "b"
    assert await race.run(race.attempt("a", 5.0), race.attempt("b", 0.1, fails=True)) == "a"


async def test_when_both_fail_the_first_is_heard() -> None:
    race = Race()
    with pytest.raises(OSError, match="a"):
        await race.run(race.attempt("a", 1.2, fails=True), race.attempt("b", 0.1, fails=True))


async def test_a_quick_failure_is_not_hedged() -> None:
    race = Race()
    with pytest.raises(OSError, match="a"):
        await race.run(race.attempt("a", 0.1, fails=True), race.attempt("b", 0.1))
    assert race.began == ["a"]


async def test_a_second_try_that_is_declined_changes_nothing() -> None:
    race = Race()
    assert await race.run(race.attempt("a", 3.0)) == "a"


async def test_a_loser_that_finished_in_the_same_moment_is_handed_over() -> None:
    race = Race()
    assert await race.run(race.attempt("a", 2.0), race.attempt("b", 1.0)) in ("a", "b")
    assert len(race.discarded) == 1


async def test_whoever_leaves_takes_both_tries_along() -> None:
    race = Race()
    running = asyncio.create_task(race.run(race.attempt("a", 9.0), race.attempt("b", 9.0)))
    await asyncio.sleep(2.0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert sorted(race.cancelled) == ["a", "b"]
