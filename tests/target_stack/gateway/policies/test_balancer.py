"""The next try goes to the least loaded replica that was not tried yet."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from target_stack.gateway.policies.balancer import Balancer, BalancerSettings


def test_fewest_in_flight_comes_first() -> None:
    assert Balancer(BalancerSettings()).order(["a", "b", "c"], {"a": 3, "b": 1, "c": 2}) == ["b", "c", "a"]


def test_a_retry_prefers_a_replica_that_was_not_tried_however_busy() -> None:
    assert Balancer(BalancerSettings()).order(["a", "b"], {"a": 0, "b": 50}, tried=["a"]) == ["b", "a"]


def test_idle_replicas_take_turns() -> None:
    balancer = Balancer(BalancerSettings())
    first = Counter(balancer.order(["a", "b", "c"], {})[0] for _ in range(300))
    assert first == {"a": 100, "b": 100, "c": 100}


@given(st.dictionaries(st.sampled_from("abcdef"), st.integers(0, 9)), st.sets(st.sampled_from("abcdef")))
def test_only_admitted_replicas_are_named_each_once(load: dict[str, int], tried: set[str]) -> None:
    admitted = sorted(load)
    order = Balancer(BalancerSettings()).order(admitted, load, tried)
    assert sorted(order) == admitted
    assert all((a in tried, load[a]) <= (b in tried, load[b]) for a, b in pairwise(order))


def test_nobody_admitted_is_an_empty_order() -> None:
    assert Balancer(BalancerSettings()).order([], {}) == []


@pytest.mark.parametrize(("kind", "hot"), [("least_in_flight", 20), ("round_robin", 50)])
def test_a_replica_that_is_four_times_slower_gets_a_fifth_of_the_load_and_half_of_it_from_who_takes_turns(
    kind: Literal["least_in_flight", "round_robin"], hot: int
) -> None:
    """The weakness `balances_blindly` is the second line."""
    balancer, ends, given = Balancer(BalancerSettings(kind)), {"hot": [], "cool": []}, Counter[str]()
    for now in range(100):
        ends = {name: [end for end in ends[name] if end > now] for name in ends}
        chosen = balancer.order(["hot", "cool"], {name: len(open_) for name, open_ in ends.items()})[0]
        ends[chosen].append(now + {"hot": 80, "cool": 20}[chosen])
        given[chosen] += 1
    assert given["hot"] == pytest.approx(hot, abs=8)
