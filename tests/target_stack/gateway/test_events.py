"""The ring keeps the newest events and lets a reader see what it missed."""

from __future__ import annotations

from target_stack.gateway.events import EventRing


def test_a_reader_gets_what_came_after_its_last_number() -> None:
    ring = EventRing(lambda: 5.0)
    ring.add("breaker_opened", dependency="vector-store")
    ring.add("breaker_closed", mono=7.5, dependency="vector-store")
    assert ring.after(1) == {
        "events": [{"seq": 2, "mono": 7.5, "name": "breaker_closed", "dependency": "vector-store"}],
        "last": 2,
    }


def test_every_event_is_told_to_the_log_with_its_own_time() -> None:
    told = []
    ring = EventRing(lambda: 5.0, tell=lambda *event: told.append(event))
    ring.add("breaker_closed", mono=7.5, dependency="vector-store")
    assert told == [(7.5, "breaker_closed", {"dependency": "vector-store"})]


def test_the_ring_is_bounded_and_numbers_show_the_gap() -> None:
    ring = EventRing(lambda: 0.0, size=3)
    for _ in range(10):
        ring.add("shedding_started")
    assert [event["seq"] for event in ring.after(0)["events"]] == [8, 9, 10]
