"""The runner: every way out leaves nothing broken and says how it ended."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from world import Run, Toy, World, failing, planned, set_up

from chaos.run.runner import Finish, Foregone, run
from chaos.testing.clock import run_virtual


def carried_out(make: Any, during: Any = None) -> tuple[Run, Finish]:
    """Set up and run in virtual time, with something happening meanwhile."""

    async def main() -> tuple[Run, Finish]:
        made = make()
        meanwhile = asyncio.create_task(during(made)) if during else None
        finish = await run(made.plan, made.crew)
        if meanwhile:
            await meanwhile
        return made, finish

    return run_virtual(main)


def test_a_run_arms_injects_confirms_looks_reverts_and_sees_it_gone_in_time() -> None:
    world = World()
    made, finish = carried_out(lambda: set_up(planned(Toy(world))))
    assert Finish("completed", "the plan was carried out", reverted=True) == finish
    story = [k for k in made.journal.kinds() if k.startswith(("lease", "fault", "run"))]
    wanted = "lease_granted fault_injected fault_confirmed fault_still fault_reverted fault_gone run_finished"
    assert wanted.split() == story
    assert [(4.1, "prepare toy"), (5.1, "inject toy"), (10.1, "revert toy")] == world.done


def test_the_lease_is_on_disk_before_the_harm_and_gone_after_it() -> None:
    world = World()
    held: list[tuple[str, ...]] = []

    async def peek(made: Run) -> None:
        for moment in (3.0, 4.5, 7.0, 11.0):
            await asyncio.sleep(1000 + moment - asyncio.get_running_loop().time())
            held.append(tuple(made.leases.held))

    carried_out(lambda: set_up(planned(Toy(world))), peek)
    assert [(), ("lease-toy",), ("lease-toy",), ()] == held


@pytest.mark.parametrize("moment", [0.5, 4.5, 5.05, 6.0, 9.9, 10.05, 12.0])
def test_a_stop_at_any_moment_reverts_at_once_and_ends_stopped(moment: float) -> None:
    world = World()

    async def stop(made: Run) -> None:
        await asyncio.sleep(moment)
        made.stop.request("SIGINT")
        made.stop.request("SIGTERM")
        await asyncio.sleep(0.3)
        assert not world.broken

    made, finish = carried_out(lambda: set_up(planned(Toy(world))), stop)
    assert ("stopped", True, {}) == (finish.ending, finish.reverted, made.leases.held)
    assert ["SIGINT"] == [line["by"] for line in made.journal.of("stop_requested")]
    assert made.traffic.cut


def test_a_guard_that_trips_stops_the_run_and_is_named_as_who_reverted() -> None:
    world = World()
    made, finish = carried_out(lambda: set_up(planned(Toy(world)), trip_at=6.0))
    assert ("stopped", True) == (finish.ending, finish.reverted)
    assert ["guard"] == [line["by"] for line in made.journal.of("fault_reverted")]
    assert made.journal.of("guard_tripped")[0]["t"] == pytest.approx(6.1, abs=0.3)


@pytest.mark.parametrize(("known_at", "why"), [(11.0, "after the fault"), (7.0, "while it stands")])
def test_a_run_that_is_decided_ends_there_with_its_record_first_and_nothing_left(known_at: float, why: str) -> None:
    """Not one that somebody stopped: nobody asked for it, and its verdict stands."""
    world = World()

    def outlook(now: float) -> Foregone | None:
        return Foregone(("users are served", "quick"), 42) if now >= known_at else None

    made, finish = carried_out(lambda: set_up(planned(Toy(world)), outlook=outlook))
    assert ("decided", True, set()) == (finish.ending, finish.reverted, world.broken), why
    assert "refuted whatever may still come: users are served, quick" == finish.why
    (decided,) = made.journal.of("decided")
    assert (["users are served", "quick"], 42) == (decided["hypotheses"], decided["samples"])
    assert known_at <= decided["t"] < known_at + 0.5
    assert made.traffic.cut
    assert [] == made.journal.of("stop_requested")
    assert "decided" == made.journal.of("run_finished")[0]["ending"]


def test_a_guard_goes_before_what_is_decided() -> None:
    """Harm that users suffer now is worth more than a verdict."""

    def outlook(now: float) -> Foregone | None:
        return Foregone(("users are served",), 42) if now >= 6.0 else None

    made, finish = carried_out(lambda: set_up(planned(Toy(World())), trip_at=6.0, outlook=outlook))
    assert ("stopped", []) == (finish.ending, made.journal.of("decided"))


def test_a_gate_that_does_not_hold_means_no_load_and_no_harm() -> None:
    async def gate() -> str | None:
        return "chat: status 503"

    world = World()
    made, finish = carried_out(lambda: set_up(planned(Toy(world)), gate=gate))
    assert ("gate_not_met", "chat: status 503") == (finish.ending, finish.why)
    assert (["gate", "run_finished"], []) == (made.journal.kinds(), world.done)


@pytest.mark.parametrize("toy", [{"dead": True}, {"breaks_in_inject": True}])
def test_a_target_that_cannot_be_harmed_ends_the_run_with_everything_reverted(toy: dict[str, bool]) -> None:
    world = World()
    made, finish = carried_out(lambda: set_up(planned(Toy(world, **toy))))
    assert ("cannot_inject", True, set(), {}) == (finish.ending, finish.reverted, world.broken, made.leases.held)


def test_nothing_is_injected_without_a_living_watchdog() -> None:
    world = World()
    _, finish = carried_out(lambda: set_up(planned(Toy(world)), alive=lambda: False))
    assert ("cannot_inject", []) == (finish.ending, world.done)
    assert "watchdog" in finish.why


def test_a_fault_that_never_bites_is_recorded_as_not_seen() -> None:
    world = World()
    made, finish = carried_out(lambda: set_up(planned(Toy(world, never_seen=True))))
    assert "completed" == finish.ending
    assert [False] == [line["seen"] for line in made.journal.of("fault_confirmed")]


def test_an_observer_that_hangs_delays_no_revert_and_has_seen_nothing() -> None:
    world = World()
    made, _ = carried_out(lambda: set_up(planned(Toy(world, observer_hangs=True))))
    assert (False, "revert toy") == (made.journal.of("fault_confirmed")[0]["seen"], world.done[-1][1])
    assert world.done[-1][0] <= 11.6


def test_a_revert_that_fails_is_tried_again() -> None:
    world = World()
    _, finish = carried_out(lambda: set_up(planned(Toy(world, failing_reverts=failing(3)))))
    assert ("completed", True, set()) == (finish.ending, finish.reverted, world.broken)


def test_a_revert_that_keeps_failing_is_told_and_keeps_its_lease_for_the_watchdog() -> None:
    world = World()
    made, finish = carried_out(lambda: set_up(planned(Toy(world, failing_reverts=failing(99)))))
    assert (False, ["lease-toy"]) == (finish.reverted, list(made.leases.held))
    assert "run `undo it`" in made.journal.of("fault_failed")[0]["why"]


def test_one_fault_that_cannot_be_reverted_does_not_keep_the_others() -> None:
    world = World()
    stuck = Toy(world, "stuck", failing_reverts=failing(99))
    made, finish = carried_out(lambda: set_up(planned(Toy(world, "free"), 5, 30), planned(stuck, 5, 30), trip_at=8.0))
    assert ({"stuck"}, ["lease-stuck"], False) == (world.broken, list(made.leases.held), finish.reverted)


@pytest.mark.parametrize("room", range(1, 12))
def test_a_disk_that_fills_up_at_any_record_leaves_nothing_broken(room: int) -> None:
    world = World()
    made, finish = carried_out(lambda: set_up(planned(Toy(world)), full_after=room))
    assert ("failed", True, set(), {}) == (finish.ending, finish.reverted, world.broken, made.leases.held)
    assert "No space left" in finish.why


def test_windows_are_written_with_their_real_place_in_time() -> None:
    made, _ = carried_out(lambda: set_up(planned(Toy(World()))))
    spans = {line["name"]: (round(line["start"], 6), round(line["end"], 6)) for line in made.journal.of("window")}
    fault = (5.1, 10.1)
    later = {"recovery": (10.1, 14.1), "settled": (14.1, 16.1)}
    assert {"baseline": (0.1, 5.1), "toy": fault, "fault": fault, **later} == spans


def test_a_lease_that_was_taken_away_before_the_inject_means_no_inject() -> None:
    """Otherwise the harm would be done without an undo on disk."""
    world = World()

    async def recover_by_hand(made: Run) -> None:
        await asyncio.sleep(4.6)
        made.leases.held.clear()

    _, finish = carried_out(lambda: set_up(planned(Toy(world))), recover_by_hand)
    assert ("cannot_inject", True) == (finish.ending, finish.reverted)
    assert "inject toy" not in [deed for _, deed in world.done]


@pytest.mark.parametrize("moment", [6.0, 9.5])
def test_a_fault_that_somebody_else_reverted_was_not_there_to_its_end(moment: float) -> None:
    world = World()

    async def recover_by_hand(made: Run) -> None:
        await asyncio.sleep(moment)
        made.leases.held.clear()
        world.broken.clear()

    made, _ = carried_out(lambda: set_up(planned(Toy(world))), recover_by_hand)
    still = made.journal.of("fault_still")
    assert (False, True) == (still[-1]["seen"], "somebody else" in still[-1]["what"])


def test_a_last_look_that_does_not_end_in_time_has_seen_nothing() -> None:
    made, _ = carried_out(lambda: set_up(planned(Toy(World(), observer_hangs=True))))
    (still,) = made.journal.of("fault_still")
    assert (False, True) == (still["seen"], "the observer had no answer" in still["what"])


def test_the_end_of_the_watchdog_ends_the_fault_and_the_run() -> None:
    world = World()
    alive = [True]

    async def kill_it(made: Run) -> None:
        await asyncio.sleep(6.0)
        alive[0] = False
        await asyncio.sleep(0.5)
        assert not world.broken

    _, finish = carried_out(lambda: set_up(planned(Toy(world)), alive=lambda: alive[0]), kill_it)
    assert ("failed", True, True) == (finish.ending, finish.reverted, "watchdog" in finish.why)


def test_guards_that_cannot_be_watched_end_the_run() -> None:
    world = World()

    def broken(now: float) -> None:
        if now >= 6.0:
            raise ZeroDivisionError("a bug in a guard")

    _, finish = carried_out(lambda: set_up(planned(Toy(world)), guards=broken))
    assert ("failed", True, set()) == (finish.ending, finish.reverted, world.broken)
    assert "a bug in a guard" in finish.why


def test_after_a_revert_that_failed_nothing_more_is_injected() -> None:
    world = World()
    stuck, next_one = Toy(world, "stuck", failing_reverts=failing(99)), Toy(world, "next")
    _, finish = carried_out(lambda: set_up(planned(stuck, 5, 10), planned(next_one, 20, 25)))
    assert ("failed", False) == (finish.ending, finish.reverted)
    assert "inject next" not in [deed for _, deed in world.done]


def test_harm_that_arrives_after_the_revert_is_reverted_as_well() -> None:
    """The call that injects may be under way when the revert overtakes it."""
    world = World()

    async def late(made: Run) -> None:
        await asyncio.sleep(10.15)
        world.broken.add("toy")

    made, _ = carried_out(lambda: set_up(planned(Toy(world, slow_to_go=True))), late)
    assert (set(), [True]) == (world.broken, [line["seen"] for line in made.journal.of("fault_gone")])
