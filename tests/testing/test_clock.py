"""Virtual time costs nothing, keeps order, and tells a hang."""

from __future__ import annotations

import asyncio
import time

import pytest

from chaos.testing.clock import START, NothingLeftToWaitFor, VirtualClock, run_virtual


def test_a_day_passes_in_no_time_and_the_clock_knows() -> None:
    async def main() -> float:
        clock = VirtualClock()
        await clock.sleep_until(clock.now() + 86_400)
        return clock.now()

    begun = time.monotonic()
    assert run_virtual(main) == pytest.approx(START + 86_400)
    assert time.monotonic() - begun < 10


def test_sleepers_wake_in_order_of_their_times() -> None:
    async def main() -> list[str]:
        woken: list[str] = []

        async def sleeper(name: str, for_s: float) -> None:
            await asyncio.sleep(for_s)
            woken.append(name)

        await asyncio.gather(sleeper("late", 3), sleeper("early", 1), sleeper("middle", 2))
        return woken

    assert run_virtual(main) == ["early", "middle", "late"]


def test_timeouts_are_virtual_too() -> None:
    async def main() -> float:
        begun = VirtualClock().now()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(30):
                await asyncio.Event().wait()
        return VirtualClock().now() - begun

    assert run_virtual(main) == pytest.approx(30)


def test_a_time_that_is_past_returns_at_once() -> None:
    async def main() -> float:
        await VirtualClock().sleep_until(START - 5)
        return VirtualClock().now()

    assert run_virtual(main) == START


def test_a_program_that_waits_for_nothing_is_told_so_instead_of_hanging() -> None:
    async def main() -> None:
        await asyncio.Event().wait()

    with pytest.raises(NothingLeftToWaitFor):
        run_virtual(main)
