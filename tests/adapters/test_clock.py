"""The real clock tells monotonic time and wakes on time."""

from __future__ import annotations

import asyncio
import statistics
import time
from pathlib import Path

import pytest

from chaos.adapters.clock import MonotonicClock


def test_now_is_the_monotonic_clock_that_all_processes_share() -> None:
    before = time.clock_gettime(time.CLOCK_MONOTONIC)
    now = MonotonicClock().now()
    assert before <= now <= time.clock_gettime(time.CLOCK_MONOTONIC)


def test_the_boot_id_is_the_kernels(tmp_path: Path) -> None:
    (tmp_path / "boot_id").write_text("abc\n")
    assert MonotonicClock(tmp_path / "boot_id").boot_id() == "abc"


def test_a_time_that_is_past_returns_at_once_and_never_yields() -> None:
    MonotonicClock().sleep_until(0.0).close()
    asyncio.run(MonotonicClock().sleep_until(0.0))


@pytest.mark.system
def test_no_sleep_ends_early_and_the_typical_one_ends_closer_than_a_loop_timer_can() -> None:
    clock = MonotonicClock()

    async def lateness(sleep) -> list[float]:
        late = []
        for wait_s in (0.0003, 0.0011, 0.0024, 0.0052, 0.0077) * 8:
            due = clock.now() + wait_s
            await sleep(due)
            late.append(clock.now() - due)
        return late

    async def by_the_loop(due: float) -> None:
        await asyncio.sleep(due - clock.now())

    fine, coarse = asyncio.run(lateness(clock.sleep_until)), asyncio.run(lateness(by_the_loop))
    assert min(fine) >= 0
    assert statistics.median(fine) < statistics.median(coarse)


@pytest.mark.system
def test_a_cancelled_sleep_leaves_no_descriptor_open() -> None:
    async def main() -> int:
        clock, fds = MonotonicClock(), Path("/proc/self/fd")
        before = len(list(fds.iterdir()))  # noqa: ASYNC240 - a look at this very process
        sleeps = [asyncio.create_task(clock.sleep_until(clock.now() + 0.0035)) for _ in range(5)]
        await asyncio.sleep(0)
        for sleep in sleeps:
            sleep.cancel()
        await asyncio.gather(*sleeps, return_exceptions=True)
        return len(list(fds.iterdir())) - before  # noqa: ASYNC240 - a look at this very process

    assert asyncio.run(main()) == 0


@pytest.mark.system
def test_thousands_of_sleeps_at_once_all_end_on_time_or_later() -> None:
    async def main() -> float:
        clock = MonotonicClock()
        due = clock.now() + 0.05

        async def one() -> float:
            await clock.sleep_until(due)
            return clock.now() - due

        return min(await asyncio.gather(*(one() for _ in range(3000))))

    assert asyncio.run(main()) >= 0
