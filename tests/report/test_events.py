"""The story of a journal: each record one sentence or none, flapping told once with counts."""

import pytest

from chaos.journal.record import Record
from chaos.report.events import Moment, Story, whole_story


def event(at: float, name: str, **more: str) -> Record:
    return Record(
        0, at + 0.3, "event", {"source": "gateway", "name": name, "dependency": "vector-store", "at": at, **more}
    )


def load_started(at: float = 10.0) -> Record:
    return Record(0, at - 0.1, "load_started", {"at": at, "loads": [{"name": "chat", "planned": 3}]})


def told(*records: Record) -> list[tuple[str, str]]:
    return [(moment.clock, moment.text) for moment in whole_story((load_started(), *records))[1:]]


@pytest.mark.parametrize(
    ("kind", "fields", "expected"),
    [
        ("gate", {"held": True, "why": "users are served"}, "gate: users are served"),
        ("gate", {"held": False, "why": "503"}, "gate NOT MET: 503"),
        ("fault_injected", {"fault_kind": "noop", "targets": ["a", "b"]}, "outage: noop injected on a, b"),
        ("fault_confirmed", {"seen": True, "what": "gone"}, "outage: confirmed: gone"),
        ("fault_confirmed", {"seen": False, "what": "it runs"}, "outage: NOT CONFIRMED: it runs"),
        ("fault_still", {"seen": False, "what": "it runs"}, "outage: NO LONGER THERE before its revert: it runs"),
        ("fault_reverted", {"by": "watchdog"}, "outage: reverted by watchdog"),
        ("fault_gone", {"seen": False, "what": "silent"}, "outage: NOT SEEN GONE: silent"),
        ("fault_failed", {"step": "revert", "why": "no answer"}, "outage: revert FAILED: no answer"),
        (
            "guard_tripped",
            {"guard": "ttft over 4s", "value": 2.34567, "bound": "not above 1s"},
            "guard TRIPPED: ttft over 4s was 2.35, wanted not above 1s",
        ),
        (
            "guard_tripped",
            {"guard": "success_ratio", "value": 0.9, "bound": "b", "samples": 54, "likelihood_ratio": 123.4},
            "guard TRIPPED: success_ratio was 0.9, wanted b; 54 outcomes, likelihood ratio 123",
        ),
        ("stop_requested", {"by": "SIGINT"}, "stop asked for by SIGINT"),
        (
            "load_finished",
            {"loads": {"chat": {"planned": 3, "sent": 2, "finished": 2}}},
            "load ended: chat sent 2 of 3",
        ),
        ("run_finished", {"ending": "gate_not_met", "why": "users wait"}, "run gate not met: users wait"),
    ],
)
def test_a_record_is_one_sentence(kind: str, fields: dict[str, object], expected: str) -> None:
    assert [(f"{2:.2f}s", expected)] == told(Record(0, 12.0, kind, {"fault": "outage", **fields}))


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        ("fault_still", {"fault": "outage", "seen": True, "what": "gone"}),
        ("probe_failed", {"probe": "metrics_text", "target": "tools", "why": "refused"}),
        ("seal", {"records": 1, "samples": 0, "readings": 0}),
        ("event", {"source": "tools", "name": "tool_call", "outcome": "ok"}),
        ("event", {"source": "tools", "name": "side_effect", "tool": "open_ticket"}),
    ],
)
def test_what_everybody_expects_is_not_told(kind: str, fields: dict[str, object]) -> None:
    assert [] == told(Record(0, 12.0, kind, fields))


def test_an_event_is_told_at_the_time_of_the_stack_with_who_and_why() -> None:
    ejected = event(13.0, "replica_ejected", dependency="engine", replica="engine-b", reason="stalled")
    assert [("3.00s", "gateway: engine engine-b: replica_ejected (stalled)")] == told(ejected)


FLAPPING = [event(12.0 + i, ("breaker_opened", "breaker_half_open")[i % 2]) for i in range(8)]


def test_a_flapping_breaker_is_told_once_with_counts() -> None:
    assert [
        ("2.00s", "gateway: vector-store: breaker_opened"),
        ("3.00s", "gateway: vector-store: breaker_half_open"),
        ("4.00s", "gateway: vector-store: 3 more breaker_opened, 3 more breaker_half_open, the last at 9.00s"),
        ("10.00s", "gateway: vector-store: breaker_closed"),
    ] == told(*FLAPPING, event(20.0, "breaker_closed"))


def test_a_second_opening_is_no_flapping() -> None:
    assert 4 == len(told(*FLAPPING[:3], event(15.0, "breaker_closed")))


def test_two_replicas_flap_apart() -> None:
    names = ("replica_ejected", "replica_restored")
    both = [event(12.0 + i, names[i % 2], replica=f"engine-{which}") for i in range(4) for which in "ab"]
    texts = [text for _, text in told(*both)]
    assert 6 == len(texts)
    for which in "ab":
        folded = (
            f"gateway: vector-store engine-{which}: 1 more replica_ejected, 1 more replica_restored, the last at 5.00s"
        )
        assert folded in texts


def test_the_end_of_a_run_lets_go_of_what_was_held_back() -> None:
    story = Story()
    for record in (load_started(), *FLAPPING):
        story.hear(record.t, record.kind, record.fields)
    last = story.hear(30.0, "run_finished", {"ending": "stopped", "why": ""})
    assert ["gateway: vector-store: 3 more", "run stopped"] == [moment.text[:29] for moment in last]
    assert () == story.rest()


def test_what_comes_before_the_load_has_no_time() -> None:
    moments = whole_story((Record(0, 0.4, "gate", {"held": True}), load_started()))
    assert [("before", "gate: users are served"), ("0.00s", "load begins: chat, 3 requests")] == [
        (moment.clock, moment.text) for moment in moments
    ]


def test_a_stack_cannot_steer_a_terminal() -> None:
    assert Moment(2.0, "stack", "gateway: vector-store: \ufffd[2J red") in Story(_zero=10.0).hear(
        12.3, "event", event(12.0, "\x1b[2J\nred").fields
    )
