"""More users than the engines can serve, and more batch work than anybody asked for, in virtual time."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from overload import batch_beside, batch_surge, steady

from target_stack.weaknesses import find_weaknesses, plant


def test_at_one_and_a_half_times_capacity_goodput_stays_and_refusals_are_quick() -> None:
    seen = steady({}, 1.4, seconds=15)
    assert seen.goodput >= 0.9
    assert seen.shed > 0.1
    assert seen.shed_s_p99 < 0.1


def test_a_surge_of_batch_work_leaves_users_alone_and_is_worked_on() -> None:
    seen = batch_surge({})
    assert seen.users.served >= 0.995
    assert seen.batch.served >= 0.15


def test_batch_work_beside_too_many_users_still_gets_its_share() -> None:
    seen = batch_beside({}).batch
    assert seen.served >= 0.95
    assert seen.ttft_s_p50 < 1.5


def weak(name: str) -> Mapping[str, Any]:
    """The policies with one planted weakness."""
    policies: Mapping[str, Any] = plant(find_weaknesses([name]), "gateway", {})["policies"]
    return policies


def test_who_is_refused_after_the_work_is_refused_late() -> None:
    assert steady(weak("shed_late"), 1.4, seconds=15).shed_s_p99 > 0.3


def test_with_one_class_a_surge_of_batch_work_drives_users_away() -> None:
    assert batch_surge(weak("no_priority")).users.served < 0.8


def test_without_aging_batch_work_waits_in_vain() -> None:
    assert batch_beside(weak("batch_starved")).batch.ttft_s_p50 > 3
    assert batch_surge(weak("batch_starved")).batch.served < 0.15


def test_without_a_bound_on_the_queue_everybody_is_served_too_late() -> None:
    assert steady(weak("queue_unbounded"), 1.4, seconds=20).goodput < 0.6
