"""Replicas leave and return by progress; the last one never leaves."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from target_stack.gateway.policies.outlier import EngineLoad, OutlierDetector
from target_stack.gateway.policies.settings import OutlierSettings

RULES = OutlierSettings(consecutive_errors=3, consecutive_stalls=3)


def detector(*names: str) -> OutlierDetector:
    return OutlierDetector(RULES, names or ("a", "b"))


def test_an_unreachable_replica_leaves_at_once() -> None:
    one = detector()
    assert one.trouble("a", "unreachable")
    assert one.admitted() == ["b"]


def test_a_stall_without_any_progress_is_a_frozen_replica() -> None:
    one = detector()
    one.progress(5.0, "a")
    assert one.trouble("a", "stalled", silent_since=5.0)


def test_a_stall_beside_progress_for_others_is_only_a_slow_request() -> None:
    one = detector()
    one.progress(6.0, "a")
    assert [one.trouble("a", "stalled", silent_since=5.0) for _ in range(3)] == [False, False, True]


def test_a_token_anywhere_starts_the_count_again() -> None:
    one = detector()
    for _ in range(10):
        one.trouble("a", "error")
        one.trouble("a", "error")
        one.progress(1.0, "a")
    assert one.admitted() == ["a", "b"]


def test_the_third_error_in_a_row_ejects_on_every_cycle() -> None:
    one = detector()
    for _ in range(5):
        assert [one.trouble("a", "error") for _ in range(3)] == [False, False, True]
        assert one.restored("a")


def test_the_last_replica_is_never_ejected() -> None:
    one = detector()
    assert one.trouble("a", "unreachable")
    assert not one.trouble("b", "unreachable")
    assert one.admitted() == ["b"]


def test_restoring_an_admitted_replica_changes_nothing() -> None:
    assert not detector().restored("a")


def test_routing_follows_the_ejections() -> None:
    one = detector("a", "b", "c")
    one.trouble("b", "unreachable")
    assert one.routable() == ["a", "c"]


def test_routing_to_everyone_ejects_in_name_only() -> None:
    one = OutlierDetector(OutlierSettings(routing="everyone"), ("a", "b"))
    assert one.trouble("a", "unreachable")
    assert (one.admitted(), one.routable()) == (["b"], ["a", "b"])


def test_with_the_gauges_as_evidence_a_stall_counts_only_when_they_admit_it() -> None:
    one = OutlierDetector(OutlierSettings(evidence="running"), ("a", "b"))
    assert not any(one.trouble("a", "stalled", silent_since=5.0) for _ in range(10))
    one.reported("a", EngineLoad(running=3, waiting=9))  # what a frozen engine repeats for ever
    assert not one.trouble("a", "stalled", silent_since=5.0)
    one.reported("a", EngineLoad(running=0, waiting=9))
    assert one.trouble("a", "stalled", silent_since=5.0)


def test_with_the_status_as_evidence_only_an_unreachable_replica_leaves() -> None:
    one = OutlierDetector(OutlierSettings(evidence="status"), ("a", "b"))
    for trouble in ("stalled", "error"):
        for _ in range(10):
            assert not one.trouble("a", trouble, silent_since=0.0)  # type: ignore[arg-type]  # a word of Trouble
    assert one.trouble("a", "unreachable")


@given(st.lists(st.sampled_from(("unreachable", "stalled", "error", "progress", "probe")), max_size=200), st.integers())
def test_somebody_is_always_admitted_and_everybody_can_return(history: list[str], seed: int) -> None:
    one, rng = detector("a", "b", "c"), random.Random(seed)
    for now, what in enumerate(history):
        name = rng.choice("abc")
        before = one.admitted()
        if what == "progress":
            one.progress(float(now), name)
        elif what == "probe":
            assert one.restored(name) == (name not in before)
        else:
            left = one.trouble(name, what, silent_since=float(now) - 1)  # type: ignore[arg-type]  # a word of Trouble
            assert left == (name in before and name not in one.admitted())
        assert one.admitted()
        assert sorted(one.admitted() + one.ejected()) == ["a", "b", "c"]
    for name in one.ejected():
        assert one.restored(name)
    assert one.admitted() == ["a", "b", "c"]
