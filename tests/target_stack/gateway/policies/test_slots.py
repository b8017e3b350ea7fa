"""Batch work never holds the slots that are kept for users, and users may hold them all."""

from __future__ import annotations

from target_stack.gateway.policies.slots import Slots, SlotSettings


def filled(priority: str, limit: int, share: float) -> int:
    slots, started = Slots(SlotSettings(batch_most=share)), 0
    while slots.free(priority, limit):  # type: ignore[arg-type]  # a word of Priority
        slots.start(priority)  # type: ignore[arg-type]  # a word of Priority
        started += 1
    return started


def test_batch_work_fills_its_part_and_users_fill_all() -> None:
    assert [filled("batch", 16, 0.75), filled("interactive", 16, 0.75)] == [12, 16]


def test_batch_work_may_always_hold_one_slot() -> None:
    assert [filled("batch", limit, 0.1) for limit in (1, 4)] == [1, 1]


def test_with_nothing_kept_back_batch_work_fills_all() -> None:
    assert filled("batch", 16, 1.0) == 16


def test_users_in_flight_leave_batch_work_only_what_is_left_of_the_limit() -> None:
    slots = Slots(SlotSettings(batch_most=0.75))
    for _ in range(15):
        slots.start("interactive")
    assert slots.free("batch", 16)
    slots.start("batch")
    assert not slots.free("interactive", 16)
    slots.end("interactive")
    assert (slots.held, slots.free("interactive", 16)) == (15, True)
