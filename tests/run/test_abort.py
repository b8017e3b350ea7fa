"""An abort reverts first: looks are cut off, injects too, all reverts begin at once, and what was cut off is told."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from world import Run, Toy, World, planned, set_up

from chaos.faults.fault import Sighting, Undo
from chaos.inventory import Target
from chaos.ports import Host
from chaos.run.runner import Finish, run
from chaos.testing.clock import run_virtual

ABORTED_AT = 7.0


@dataclass(frozen=True)
class Paced(Toy):
    """A toy whose verbs take their time and write down when they begin and end."""

    inject_s: float = 0.0
    look_s: float = 0.0
    revert_s: float = 0.0
    told: list[tuple[float, str]] = field(default_factory=list)

    async def _take(self, verb: str, seconds: float) -> None:
        now = asyncio.get_running_loop().time
        self.told.append((round(now() - 1000, 3), f"{verb} begins"))
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            self.told.append((round(now() - 1000, 3), f"{verb} is cut off"))
            raise
        self.told.append((round(now() - 1000, 3), f"{verb} ends"))

    async def inject(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> None:
        if not self.never_seen:
            self.world.broken.add(self.name)
        await self._take("inject", self.inject_s)

    async def confirm(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        await self._take("look", self.look_s)
        return await super().confirm(targets, undo, host)

    async def revert(self, undo: Undo, host: Host) -> None:
        await self._take("revert", self.revert_s)
        await super().revert(undo, host)

    async def confirm_gone(self, targets: tuple[Target, ...], undo: Undo, host: Host) -> Sighting:
        await self._take("look for it to be gone", self.look_s)
        return await super().confirm_gone(targets, undo, host)

    def when(self, what: str) -> list[float]:
        return [at for at, told in self.told if told == what]


def aborted(*toys: Paced, at: float = ABORTED_AT, end: float = 30.0) -> tuple[Run, Finish]:
    """A run of them that is stopped at a moment of its plan."""
    return stopped(lambda made: asyncio.sleep(0.1 + at), *toys, end=end)


def stopped(until: Callable[[Run], Awaitable[None]], *toys: Paced, end: float = 30.0) -> tuple[Run, Finish]:
    async def main() -> tuple[Run, Finish]:
        made = set_up(*(planned(toy, 5, end) for toy in toys))

        async def stop() -> None:
            await until(made)
            made.stop.request("SIGINT")

        stopping = asyncio.create_task(stop())
        finish = await run(made.plan, made.crew)
        await stopping
        return made, finish

    return run_virtual(main)


def test_all_reverts_begin_at_once_and_looks_for_them_to_be_gone_when_the_last_has_returned() -> None:
    world = World()
    quick, slow = Paced(world, "quick", revert_s=0.1), Paced(world, "slow", revert_s=0.8)
    _, finish = aborted(quick, slow)
    assert (finish.reverted, set()) == (True, world.broken)
    assert ([7.1], [7.1]) == (quick.when("revert begins"), slow.when("revert begins"))
    assert ([7.9], [7.9]) == tuple(toy.when("look for it to be gone begins") for toy in (quick, slow))


def test_a_look_under_way_is_cut_off_and_told_to_have_seen_nothing() -> None:
    toy = Paced(World(), look_s=60.0)
    made, _ = aborted(toy)
    (told,) = made.journal.of("fault_confirmed")
    assert ([7.1], False) == (toy.when("look is cut off"), told["seen"])
    assert "before the run was ended" in told["what"]
    kinds = made.journal.kinds()
    assert kinds.index("fault_reverted") < kinds.index("fault_confirmed") < kinds.index("fault_gone")


def test_what_was_seen_before_the_abort_stays_seen() -> None:
    made, _ = aborted(Paced(World()))
    assert [True] == [line["seen"] for line in made.journal.of("fault_confirmed")]


def test_an_inject_that_takes_long_is_cut_off_and_reverted() -> None:
    """A drain with a grace of minutes must not keep anybody waiting."""
    world = World()
    toy = Paced(world, inject_s=300.0)
    made, finish = aborted(toy)
    assert ("stopped", True, set(), {}) == (finish.ending, finish.reverted, world.broken, made.leases.held)
    assert ([7.1], [7.1]) == (toy.when("inject is cut off"), toy.when("revert begins"))


def test_a_revert_that_is_under_way_is_waited_for_and_not_begun_again() -> None:
    toy = Paced(World(), revert_s=1.0)
    made, finish = aborted(toy, at=10.5, end=10.0)
    assert (finish.reverted, [10.1], [11.1]) == (True, toy.when("revert begins"), toy.when("revert ends"))
    assert ["timeline"] == [line["by"] for line in made.journal.of("fault_reverted")]


def test_a_look_for_a_fault_to_be_gone_is_taken_up_again_after_the_abort() -> None:
    world = World()
    ended, standing = Paced(world, "ended", look_s=0.4), Paced(world, "standing", revert_s=0.2)

    async def main() -> Run:
        made = set_up(planned(ended, 5, 7), planned(standing, 5, 30))
        asyncio.get_running_loop().call_later(7.2, made.stop.request, "SIGINT")
        await run(made.plan, made.crew)
        return made

    made = run_virtual(main)
    assert [7.2] == ended.when("look for it to be gone is cut off")
    assert ["ended", "standing"] == sorted(line["fault"] for line in made.journal.of("fault_gone"))
    assert all(line["seen"] for line in made.journal.of("fault_gone"))


def test_the_request_is_on_record_before_anything_is_reverted() -> None:
    made, _ = aborted(Paced(World()))
    kinds = made.journal.kinds()
    assert kinds.index("stop_requested") < kinds.index("fault_reverted")
    assert made.traffic.cut


def test_no_look_begins_once_the_revert_has() -> None:
    """It would see what a revert leaves behind, and take it for a fault that stood to its end."""
    toy = Paced(World(), never_seen=True, look_s=0.03, revert_s=2.0)
    made, _ = aborted(toy, at=29.0, end=10.0)
    assert max(toy.when("look begins")) < 10.1 + 0.001
    assert [False] == [line["seen"] for line in made.journal.of("fault_still")]


@pytest.mark.parametrize("by", ["SIGINT", "SIGTERM", "guard"])
def test_whoever_asks_is_named_as_who_reverted(by: str) -> None:
    async def main() -> list[Any]:
        made = set_up(planned(Paced(World()), 5, 30))
        asyncio.get_running_loop().call_later(6.0, made.stop.request, by)
        await run(made.plan, made.crew)
        return [line["by"] for line in made.journal.of("fault_reverted")]

    assert [by] == run_virtual(main)
