"""A GPU in virtual time: conditions, heat, counters, and what the engine is told."""

from __future__ import annotations

import pytest

from target_stack.device.conditions import (
    BadCondition,
    Contention,
    Ecc,
    Heat,
    Hung,
    Lost,
    Mig,
    ReservedMemory,
    Throttle,
    XidEvent,
    read_condition,
)
from target_stack.device.gpu import Gpu
from target_stack.device.registers import Registers


def gpu() -> Gpu:
    subject = Gpu("node-gpu0", 0, Registers.private())
    subject.power_on(0.0)
    return subject


def run(subject: Gpu, seconds: float, *, load: float, since: float = 0.0) -> None:
    """Let time pass in ticks while an engine keeps the device busy for that share of it."""
    for tick in range(1, round(seconds * 5) + 1):
        subject.registers["busy_s"] += 0.2 * load
        subject.advance(since + tick * 0.2)


def test_a_healthy_device_tells_the_engine_to_go_ahead():
    registers = gpu().registers
    assert (registers["speed"], registers["lost"], registers["hung"], registers["reserved_bytes"]) == (1.0, 0, 0, 0)


def test_work_becomes_utilisation_power_and_heat():
    idle, busy = gpu(), gpu()
    run(idle, 60, load=0.0)
    run(busy, 60, load=1.0)
    assert (idle.utilization, busy.utilization) == (0.0, pytest.approx(1.0))
    assert (idle.power_w, busy.power_w) == (30.0, pytest.approx(165.0))
    assert 30 < idle.temperature_c < 40
    assert 65 < busy.temperature_c < 75


def test_heat_follows_with_a_delay_of_its_own():
    subject = gpu()
    run(subject, 15, load=1.0)
    begin, settled = 25.0, 25.0 + 0.28 * 165
    assert (subject.temperature_c - begin) / (settled - begin) == pytest.approx(0.632, abs=0.02)


def test_a_device_that_cannot_be_cooled_slows_itself_down():
    subject = gpu()
    subject.begin("m", Heat(degrees_c=60.0), 0.0)
    run(subject, 120, load=1.0)
    assert subject.clock < 0.9
    assert subject.reasons & 0x20
    assert subject.registers["speed"] == subject.clock


def test_throttling_is_told_to_the_engine_at_once_and_taken_back_at_once():
    subject = gpu()
    subject.begin("m", Throttle(clock=0.3), 0.0)
    assert (subject.registers["speed"], subject.reasons) == (0.3, 0x08 | 0x40)
    assert subject.end("m")
    assert subject.registers["speed"] == 1.0


def test_conditions_of_several_marks_add_up_and_end_one_by_one():
    subject = gpu()
    subject.begin("a", Throttle(clock=0.5), 0.0)
    subject.begin("b", Contention(share=0.5), 0.0)
    assert subject.registers["speed"] == 0.25
    subject.end("a")
    assert subject.registers["speed"] == 0.5


def test_beginning_twice_under_one_mark_happens_once_and_ending_twice_is_harmless():
    subject = gpu()
    for _ in range(2):
        subject.begin("m", Lost(), 1.0)
    assert (subject.registers["faults"], [entry.code for entry in subject.log]) == (1, [79])
    assert [subject.end("m"), subject.end("m")] == [True, False]
    assert subject.registers["lost"] == 0


@pytest.mark.parametrize(
    ("condition", "faults", "lost", "hung", "unusable"),
    [
        (Lost(), 1, 1, 0, 0),
        (Hung(), 0, 0, 1, 0),
        (XidEvent(31), 1, 0, 0, 0),
        (XidEvent(63), 0, 0, 0, 0),
        (XidEvent(74), 0, 0, 0, 0),
        (XidEvent(79), 1, 1, 0, 0),
        (XidEvent(95), 1, 0, 0, 1),
        (XidEvent(119), 0, 0, 1, 0),
        (XidEvent(46), 1, 0, 0, 1),
        (XidEvent(154), 0, 0, 0, 0),
        (Ecc("corrected"), 0, 0, 0, 0),
        (Ecc("uncorrected"), 1, 0, 0, 0),
        (Ecc("uncorrected", contained=False), 1, 0, 0, 1),
        (Ecc("uncorrected", remap="failed"), 1, 0, 0, 1),
        (Mig("2g.12gb"), 1, 0, 0, 0),
        (Mig("2g.12gb", stuck=True), 1, 0, 0, 1),
    ],
    ids=str,
)
def test_each_condition_does_to_the_work_what_it_does_on_a_real_device(condition, faults, lost, hung, unusable):
    registers = (subject := gpu()).registers
    subject.begin("m", condition, 0.0)
    assert [registers[name] for name in ("faults", "lost", "hung", "unusable")] == [faults, lost, hung, unusable]


def test_an_uncorrectable_error_is_counted_logged_and_marks_a_row_until_the_reset():
    subject = gpu()
    subject.begin("m", Ecc("uncorrected"), 2.0)
    counters = subject.counters
    assert [entry.code for entry in subject.log] == [48, 63, 94]
    assert (counters.uncorrected_volatile, counters.pending_rows, counters.remapped_rows) == (1, 1, 0)
    subject.end("m")
    assert (counters.uncorrected_volatile, counters.uncorrected_aggregate) == (0, 1)
    assert (counters.pending_rows, counters.remapped_rows) == (0, 1)


def test_a_row_without_a_spare_is_a_failure_of_the_remapper_until_the_device_is_replaced():
    subject = gpu()
    subject.begin("m", Ecc("uncorrected", remap="failed"), 2.0)
    assert [entry.code for entry in subject.log] == [48, 64, 94]
    assert (subject.counters.pending_rows, subject.counters.remap_failed) == (0, True)
    subject.end("m")
    assert not subject.counters.remap_failed


def test_corrected_errors_come_at_their_rate_and_the_burst_is_told_once():
    subject = gpu()
    subject.begin("m", Ecc("corrected", rate_per_s=20.0), 0.0)
    run(subject, 3, load=0.0)
    assert subject.counters.corrected_volatile == pytest.approx(60)
    assert [entry.code for entry in subject.log] == [92]


def test_a_thermal_slowdown_is_hot_and_counted_as_heat_and_cools_down_after():
    subject = gpu()
    subject.begin("m", Throttle(reason="hw_thermal_slowdown", clock=0.3), 0.0)
    run(subject, 2, load=0.5)
    assert subject.temperature_c > subject.spec.slowdown_c
    assert (subject.counters.hot_s, subject.counters.capped_s) == (pytest.approx(2.0), 0.0)
    subject.end("m")
    run(subject, 60, load=0.5, since=2.0)
    assert subject.temperature_c < 70


def test_a_power_cap_lowers_what_may_be_drawn_and_a_brake_comes_from_outside():
    capped, braked = gpu(), gpu()
    capped.begin("m", Throttle(reason="sw_power_cap", clock=0.5), 0.0)
    braked.begin("m", Throttle(reason="hw_power_brake", clock=0.5), 0.0)
    for subject in (capped, braked):
        run(subject, 30, load=1.0)
        assert subject.counters.capped_s == pytest.approx(30.0)
    assert (capped.limit_w, braked.limit_w) == (30 + 135 / 2, 165)
    assert capped.power_w == pytest.approx(capped.limit_w)


def test_who_computes_beside_the_engine_has_its_share_and_a_context():
    subject = gpu()
    subject.begin("m", Contention(share=0.6), 0.0)
    run(subject, 1, load=0.5)
    assert (subject.own_utilization, subject.utilization) == (pytest.approx(0.2), 1.0)
    assert subject.reserved_bytes == 512 << 20


def test_instances_come_and_go_with_nobody_on_the_device():
    subject = gpu()
    subject.begin("m", Mig("2g.12gb"), 0.0)
    assert subject.registers["faults"] == 1
    subject.end("m")
    assert (subject.registers["faults"], subject.registers["total_bytes"]) == (2, 24 << 30)


def test_a_hung_device_looks_fully_busy():
    subject = gpu()
    subject.begin("m", Hung(), 0.0)
    run(subject, 1, load=0.0)
    assert subject.utilization == 1.0


def test_a_slice_is_smaller_and_slower():
    subject = gpu()
    subject.begin("m", Mig("2g.12gb"), 0.0)
    assert (subject.registers["speed"], subject.registers["total_bytes"]) == (0.5, 12 << 30)


def test_the_memory_of_a_dead_engine_is_free():
    alive = {7}
    subject = Gpu("g", 0, Registers.private(), is_alive=alive.__contains__)
    subject.power_on(0.0)
    subject.registers["pid"], subject.registers["memory_bytes"] = 7, 5e9
    subject.begin("m", ReservedMemory(0.5), 0.0)
    subject.advance(1.0)
    assert subject.used_bytes == 5e9 + (12 << 30)
    alive.clear()
    subject.advance(2.0)
    assert subject.used_bytes == 12 << 30


def test_what_somebody_takes_from_the_engine_is_no_longer_the_engines():
    subject = Gpu("g", 0, Registers.private(), is_alive={7}.__contains__)
    subject.power_on(0.0)
    subject.registers["pid"], subject.registers["memory_bytes"] = 7, 20 << 30
    subject.begin("m", ReservedMemory(0.5), 0.0)
    subject.advance(1.0)
    assert (subject.engine_bytes, subject.used_bytes) == (12 << 30, 24 << 30)


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ({}, "kind: expected one of lost, hung, xid"),
        ([], "kind: expected one of"),
        ({"kind": "xid", "code": 1}, "code: 1 is none of 13, 31"),
        ({"kind": "xid", "code": True}, "code: True is not of the kind"),
        ({"kind": "throttle", "clock": 0}, "clock: 0 is no share"),
        ({"kind": "throttle", "reason": "boredom"}, "reason: 'boredom' is none of"),
        ({"kind": "contention", "share": 1.0}, "would leave nothing"),
        ({"kind": "lost", "much": 1}, "much: a condition lost has no such setting"),
        ({"kind": "mig", "profile": "9g"}, "profile: '9g' is none of"),
        ({"kind": "ecc", "errors": "many"}, "errors: 'many' is neither"),
        ({"kind": "ecc", "remap": "never"}, "remap: 'never' is neither"),
    ],
)
def test_a_condition_that_makes_no_sense_is_refused_by_name(record, said):
    with pytest.raises(BadCondition, match=said):
        read_condition(record)


def test_a_condition_is_read_with_its_settings_and_a_mark_beside_them():
    assert read_condition({"kind": "throttle", "clock": 0.5, "mark": "m"}) == Throttle(clock=0.5)
