"""How quiet the machine was."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from chaos.adapters.files import LocalFiles
from chaos.run.noise import Noise
from chaos.testing.clock import VirtualClock, run_virtual


class Kernel:
    """Counters that move by so much with every look."""

    def __init__(self, steal=0, busy=100, stalled_us=None, load="1.50"):
        self.looks, self.steal, self.busy, self.stalled_us, self.load = 0, steal, busy, stalled_us, load

    def read(self, path):
        if path == Path("/proc/stat"):
            self.looks += 1
            return f"cpu  {self.busy * self.looks} 0 0 0 0 0 0 {self.steal * self.looks} 0 0\ncpu0 1 2 3\n"
        if path == Path("/proc/pressure/cpu"):
            share = self.stalled_us
            return None if share is None else f"some avg10=0.00 avg60=0.00 avg300=0.00 total={share * self.looks}\n"
        return f"{self.load} 1.00 1.00 2/300 4711\n"


class LateClock(VirtualClock):
    """Every fiftieth sleep ends a tenth of a second late."""

    sleeps = 0

    async def sleep_until(self, when):
        self.sleeps += 1
        await super().sleep_until(when + (0.1 if self.sleeps % 50 == 0 else 0.001))


def watched(kernel, clock, length_s=60.0):
    async def main():
        noise = Noise()
        watching = asyncio.create_task(noise.watch(clock, kernel))
        await asyncio.sleep(length_s)
        watching.cancel()
        return noise.summary()

    return run_virtual(main)


def test_a_quiet_machine_is_told_as_one():
    found = watched(Kernel(), VirtualClock())
    assert found["timer_late_s"] == {"p50": 0.0, "p99": 0.0, "max": 0.0}
    assert found["steal_share"] == {"p50": 0.0, "p99": 0.0, "max": 0.0}
    assert (found["cpu_pressure_share"], found["load_average"]["max"]) == (None, 1.5)
    assert 1150 <= found["ticks"] <= 1200


def test_timers_that_are_late_show_with_their_tail():
    late = watched(Kernel(), LateClock())["timer_late_s"]
    assert (late["p50"], late["p99"], late["max"]) == (pytest.approx(0.001), pytest.approx(0.1), pytest.approx(0.1))


def test_what_neighbours_take_is_a_share_of_all_time():
    found = watched(Kernel(steal=25, busy=75, stalled_us=300_000), VirtualClock())
    assert found["steal_share"]["p50"] == 0.25
    assert found["cpu_pressure_share"]["p50"] == pytest.approx(0.3, rel=0.05)


def test_a_kernel_that_tells_nothing_leaves_the_timers():
    class Nothing:
        def read(self, path):
            return None

    found = watched(Nothing(), VirtualClock(), length_s=3.0)
    assert (found["steal_share"], found["load_average"]) == (None, None)
    assert found["ticks"] > 50


def test_a_run_that_ended_at_once_has_no_figures():
    assert Noise().summary()["timer_late_s"] is None


def test_the_files_of_this_kernel_are_understood():
    found = watched(LocalFiles(), VirtualClock(), length_s=3.0)
    assert found["load_average"] is not None
