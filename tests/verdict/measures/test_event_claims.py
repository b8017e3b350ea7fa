"""Claims about events: their order, their number, their absence; silence counts only where somebody listened."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from chaos.journal.evidence import Evidence
from chaos.journal.record import ReadingRow
from chaos.units import Duration
from chaos.verdict.judge import decide
from chaos.verdict.measures.absent import Absent
from chaos.verdict.measures.event_count import EventCount
from chaos.verdict.measures.order import Order
from chaos.verdict.outcome import Estimate
from chaos.verdict.view import Bound, View
from chaos.verdict.windows import times_of
from tests.verdict.story import INJECT, LOAD_END, REVERT, Story, experiment

WAY = ("breaker_opened", "breaker_half_open", "breaker_closed")


def told(*events: tuple[float, str], **about: Any) -> Story:
    """A run in which the stack told these events and no others."""
    about = {"source": "gateway", "dependency": "vector-store", **about}
    added = tuple((at + 0.2, "event", {**about, "at": at, "name": name}) for at, name in events)
    return Story(events=False, added=added)


def view(story: Story | Evidence, window: str | None = "outage") -> View:
    evidence = story if isinstance(story, Evidence) else story.evidence()
    times = times_of(experiment(), evidence)
    return View(evidence, times, times.windows[window] if window else None)


def in_order(story: Story | Evidence) -> Estimate:
    claim = Order(order=WAY, within=Duration(20), of="outage.start", dependency="vector-store")
    return claim.estimate(view(story, None))


def test_an_order_that_was_kept_takes_until_its_last_event() -> None:
    found = in_order(told((INJECT + 1, WAY[0]), (INJECT + 2, WAY[1]), (INJECT + 2.1, WAY[0]), (REVERT + 2, WAY[2])))
    assert pytest.approx(17.0) == found.value
    assert found.records[1].endswith(f"(breaker_half_open at {INJECT + 2:.2f}s)")


def test_an_order_that_was_broken_is_never_kept_any_more() -> None:
    found = in_order(told((INJECT + 1, WAY[0]), (REVERT + 2, WAY[2]), (REVERT + 3, WAY[1])))
    assert (math.inf, math.inf) == found.interval
    assert f"breaker_closed at {REVERT + 2:.2f}s without breaker_half_open before it" == found.detail
    assert "refuted" == decide(found, Bound(at_most=20))


def test_an_order_without_its_end_is_refuted_once_the_time_is_over_and_open_before() -> None:
    story = told((INJECT + 1, WAY[0]))
    found = in_order(story)
    assert "no breaker_half_open (vector-store)" in found.detail
    assert ("refuted", "inconclusive") == (decide(found, Bound(at_most=20)), decide(found, Bound(at_most=60)))
    deaf = replace(story.evidence(), readings=Evidence.build().readings)
    assert "nobody listened" in (in_order(deaf).missing or "")


def test_an_order_is_two_events_or_more() -> None:
    for names in (("breaker_opened",), ("breaker_opened", "breaker_opened")):
        with pytest.raises(ValueError, match="two events or more"):
            Order(order=names, within=Duration(1), of="outage.start")


FLAPS = told((INJECT + 1, WAY[0]), (INJECT + 2, WAY[0]), (INJECT - 1, WAY[0]), (REVERT + 1, WAY[0]))


def test_events_are_counted_in_their_window() -> None:
    found = EventCount("breaker_opened", dependency="vector-store").estimate(view(FLAPS))
    assert ((2.0, 2.0), 2) == (found.interval, len(found.records))
    assert (0.0, 0.0) == EventCount("breaker_opened", dependency="cache").estimate(view(FLAPS)).interval
    assert (4.0, 4.0) == (EventCount("breaker_opened").estimate(whole_run(FLAPS))).interval


def whole_run(story: Story) -> View:
    seen = view(story, "gate")
    assert seen.window is not None
    return replace(seen, window=replace(seen.window, spans=((1.0, LOAD_END),)))


def test_absence_is_upheld_where_somebody_listened_and_refuted_by_one_event() -> None:
    assert Bound(at_most=0.0) == Absent("breaker_opened").carried_bound()
    assert "upheld" == decide(Absent("breaker_opened").estimate(view(FLAPS, "baseline")), Bound(at_most=1))
    assert "refuted" == decide(Absent("breaker_opened").estimate(view(FLAPS)), Bound(at_most=0))
    assert "upheld" == decide(Absent("shedding_started").estimate(view(FLAPS)), Bound(at_most=0))


def test_an_order_is_not_broken_by_a_forerunner_that_may_have_been_lost() -> None:
    """The half-open event may be among those that were forgotten before they were asked for."""
    rows = ((1.0, "events_last", 0.0), (REVERT + 1, "events_missed", 2.0), (LOAD_END, "events_last", 9.0))
    found = in_order(beats(told((INJECT + 1, WAY[0]), (REVERT + 2, WAY[2])), *rows))
    assert "inconclusive" == decide(found, Bound(at_most=20))
    assert "without breaker_half_open before it proves nothing" in (found.missing or "")


def beats(story: Story, *rows: tuple[float, str, float]) -> Evidence:
    heard = [ReadingRow(t, "gateway", series, value) for t, series, value in rows]
    return replace(story.evidence(), readings=Evidence.build(readings=heard).readings)


@pytest.mark.parametrize(
    ("rows", "why"),
    [
        ((), "nobody listened to the stack's events"),
        (((INJECT + 1, "events_last", 0.0), (REVERT + 1, "events_last", 0.0)), "gateway was not listened to before"),
        (((1.0, "events_last", 0.0), (REVERT - 1, "events_last", 0.0)), "gateway was not listened to after"),
        (
            ((1.0, "events_last", 9.0), (INJECT + 3, "events_last", 2.0), (REVERT + 1, "events_last", 2.0)),
            f"gateway began to count its events anew at {INJECT + 3:.1f}s",
        ),
        (
            ((1.0, "events_last", 0.0), (INJECT + 3, "events_missed", 4.0), (REVERT + 1, "events_last", 900.0)),
            f"events were forgotten before they were asked for, at {INJECT + 3:.1f}s",
        ),
    ],
)
def test_silence_that_nobody_heard_to_its_end_proves_nothing(
    rows: tuple[tuple[float, str, float], ...], why: str
) -> None:
    found = Absent("breaker_opened").estimate(view(beats(told(), *rows)))
    assert (found.missing or "").startswith(why)
    one = Absent("breaker_opened").estimate(view(beats(told((INJECT + 1, WAY[0])), *rows)))
    assert ((1.0, math.inf), "refuted") == (one.interval, decide(one, Bound(at_most=0)))
