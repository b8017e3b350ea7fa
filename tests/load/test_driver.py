"""The open loop in virtual time: when it sends, when it stops, and that its books balance."""

from __future__ import annotations

import asyncio
import math
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaos.adapters.entropy import SeededEntropy
from chaos.load.driver import LoadDriver
from chaos.load.prompts import Prompt
from chaos.load.schedule import plan_load
from chaos.spec.model import Client, Load
from chaos.testing.clock import VirtualClock, run_virtual
from chaos.units import Duration, Rate

ORIGIN = 990.0
START = 1000.5
BODY = b'data: {"choices":[{"index":0,"delta":{"content":"yes"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
SSE = {"content-type": "text/event-stream"}


class FakeWire:
    """Answers each attempt as `script` says: (status, seconds until it answers); status 0 refuses the connection."""

    def __init__(self, clock, script):
        self.clock, self.script, self.sent = clock, script, []

    async def exchange(self, request, watch):
        self.sent.append((self.clock.now(), request))
        status, after_s = self.script(len(self.sent))
        await asyncio.sleep(after_s)
        now_s = self.clock.now() - ORIGIN
        if status == 0:
            watch.broken(now_s, "connect_refused")
            return
        watch.reply(now_s, status, SSE)
        watch.chunk(now_s, BODY if status == 200 else b"")
        watch.ended(now_s)


def drive(script=lambda _: (200, 0.05), *, rate=10.0, duration_s=2.0, stop_after_s=None, drain_s=1.0, **client):
    """Rows, report and wire of a load in virtual time."""
    load = Load(name="chat", route="chat", rate=Rate(rate), arrivals="constant", client=Client(**client))
    plan = plan_load(load, (Prompt("q", question="?"),), 7, SeededEntropy(7), duration_s)

    async def main():
        clock, stop, rows = VirtualClock(), asyncio.Event(), []
        wire = FakeWire(clock, script)
        if stop_after_s is not None:
            asyncio.get_running_loop().call_at(START + stop_after_s, stop.set)
        driver = LoadDriver(plan, wire, clock, rows.append, origin=ORIGIN, drain_s=drain_s)
        report = await driver.run(START, stop)
        return rows, report, wire, clock.now()

    return run_virtual(main)


def final(rows):
    return [row for row in rows if row.final]


def test_every_request_is_sent_at_its_absolute_time():
    rows, report, wire, _ = drive()
    assert [round(at - START, 9) for at, _ in wire.sent] == [n / 10 for n in range(20)]
    assert max(report.lateness_s) < 1e-9
    assert (report.planned, report.sent, report.finished) == (20, 20, 20)
    assert [row.intended_s for row in rows] == pytest.approx([START - ORIGIN + n / 10 for n in range(20)])


def test_a_stack_that_never_answers_does_not_slow_the_sending():
    _, _, wire, _ = drive(lambda _: (200, 1000.0))
    assert [round(at - START, 9) for at, _ in wire.sent] == [n / 10 for n in range(20)]


def test_patience_ends_as_abandoned_in_its_own_time():
    rows, report, _, ended = drive(lambda _: (200, 1000.0), persona="impatient")
    assert {(row.outcome, row.why, round(row.end_s - row.sent_s, 9)) for row in rows} == {("abandoned", "timeout", 3.0)}
    assert report.finished == 20
    assert ended == pytest.approx(START + 1.9 + 3.0)


def test_a_retry_happy_client_sends_four_times_and_has_one_final_row():
    rows, _, wire, _ = drive(lambda _: (500, 0.1), persona="retry_happy", rate=1.0, duration_s=1.0)
    assert [(row.attempt, row.final) for row in rows] == [(1, False), (2, False), (3, False), (4, True)]
    assert [round(at - START, 9) for at, _ in wire.sent] == [0.0, 0.1, 0.2, 0.3]
    assert {row.intended_s for row in rows} == {START - ORIGIN}


def test_a_resend_that_succeeds_makes_the_request_good():
    rows, _, _, _ = drive(lambda n: (0, 0.0) if n == 1 else (200, 0.1), persona="retry_happy", rate=1.0, duration_s=1.0)
    assert [(row.outcome, row.final) for row in rows] == [("failed", False), ("good", True)]


def test_a_pause_before_a_resend_is_kept():
    _, _, wire, _ = drive(lambda _: (500, 0.0), rate=1.0, duration_s=1.0, retries=1, backoff=Duration(0.4))
    assert [round(at - START, 9) for at, _ in wire.sent] == [0.0, 0.4]


def test_a_stop_ends_sending_and_cuts_what_is_in_flight_after_the_drain():
    rows, report, wire, ended = drive(lambda _: (200, 0.7), stop_after_s=1.05, drain_s=0.4)
    outcomes = Counter((row.outcome, row.why) for row in rows)
    assert len(wire.sent) == 11
    assert outcomes == {("good", ""): 8, ("indeterminate", "stopped"): 3, ("indeterminate", "not_sent"): 9}
    assert (report.planned, report.sent, report.finished) == (20, 11, 8)
    assert ended == pytest.approx(START + 1.05 + 0.4)


def test_a_stop_before_the_first_request_still_closes_the_books():
    rows, report, wire, _ = drive(stop_after_s=-0.2)
    assert wire.sent == []
    assert {(row.why, row.attempt, row.final, math.isnan(row.sent_s)) for row in rows} == {("not_sent", 0, True, True)}
    assert (report.planned, report.sent, report.finished, len(rows)) == (20, 0, 0, 20)


def test_nobody_resends_once_sending_has_stopped():
    rows, _, wire, _ = drive(
        lambda _: (500, 0.0), rate=1.0, duration_s=1.0, retries=3, backoff=Duration(10), stop_after_s=2.0
    )
    assert len(wire.sent) == 1
    assert [(row.outcome, row.final) for row in rows] == [("failed", True)]


def test_a_sink_that_fails_ends_the_load_and_is_told():
    def full(_row):
        raise OSError(28, "no room")

    load = Load(name="chat", route="chat", rate=Rate(10), arrivals="constant")
    plan = plan_load(load, (Prompt("q", question="?"),), 7, SeededEntropy(7), 100.0)

    async def main():
        clock = VirtualClock()
        driver = LoadDriver(plan, FakeWire(clock, lambda _: (200, 0.0)), clock, full, origin=ORIGIN)
        with pytest.raises(OSError, match="no room"):
            await driver.run(START, asyncio.Event())
        return clock.now()

    assert run_virtual(main) < START + 2.0


def test_a_cancelled_load_closes_its_books_too():
    load = Load(name="chat", route="chat", rate=Rate(10), arrivals="constant")
    plan = plan_load(load, (Prompt("q", question="?"),), 7, SeededEntropy(7), 2.0)

    async def main():
        clock, rows = VirtualClock(), []
        driver = LoadDriver(plan, FakeWire(clock, lambda _: (200, 9.0)), clock, rows.append, origin=ORIGIN)
        running = asyncio.create_task(driver.run(START, asyncio.Event()))
        await clock.sleep_until(START + 0.95)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        return rows

    assert Counter(row.why for row in run_virtual(main)) == {"stopped": 10, "not_sent": 10}


def test_nothing_planned_is_nothing_sent():
    rows, report, _, _ = drive(duration_s=0.0)
    assert (rows, report.planned, report.lateness(0.5)) == ([], 0, None)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**16),
    st.one_of(st.none(), st.floats(-0.4, 6.0)),
    st.sampled_from(["patient", "impatient", "retry_happy"]),
    st.sampled_from([None, 0.0, 0.3]),
    st.floats(0.0, 2.0),
)
def test_the_books_balance_to_the_last_request(seed, stop_after_s, persona, backoff_s, drain_s):
    dice = SeededEntropy(seed).stream("stack")

    def script(_):
        return dice.choice([0, 200, 200, 500, 503]), dice.choice([0.0, 0.01, 0.5, 2.5, 40.0])

    rows, report, _, _ = drive(
        script,
        stop_after_s=stop_after_s,
        drain_s=drain_s,
        persona=persona,
        backoff=None if backoff_s is None else Duration(backoff_s),
    )
    assert Counter(row.request for row in final(rows)) == Counter(range(report.planned))
    for number in range(report.planned):
        mine = [row for row in rows if row.request == number]
        assert [row.final for row in mine] == [False] * (len(mine) - 1) + [True]
        assert [row.attempt for row in mine] in (list(range(1, len(mine) + 1)), [0])
    assert report.sent == sum(row.attempt == 1 for row in rows)
