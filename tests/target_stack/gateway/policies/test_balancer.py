"""The next try goes to the least loaded replica that was not tried yet."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from target_stack.gateway.policies.balancer import LeastInFlight


def test_fewest_in_flight_comes_first() -> None:
    assert LeastInFlight().order(["a", "b", "c"], {"a": 3, "b": 1, "c": 2}) == ["b", "c", "a"]


def test_a_retry_prefers_a_replica_that_was_not_tried_however_busy() -> None:
    assert LeastInFlight().order(["a", "b"], {"a": 0, "b": 50}, tried=["a"]) == ["b", "a"]


def test_idle_replicas_take_turns() -> None:
    balancer = LeastInFlight()
    first = Counter(balancer.order(["a", "b", "c"], {})[0] for _ in range(300))
    assert first == {"a": 100, "b": 100, "c": 100}


@given(st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 9)), st.sets(st.sampled_from("abcdef")))
def test_only_admitted_replicas_are_named_each_once(load: dict[str, int], tried: set[str]) -> None:
    admitted = sorted(load)
    order = LeastInFlight().order(admitted, load, tried)
    assert sorted(order) == admitted
    assert all((a in tried, load[a]) <= (b in tried, load[b]) for a, b in pairwise(order))


def test_nobody_admitted_is_an_empty_order() -> None:
    assert LeastInFlight().order([], {}) == []
