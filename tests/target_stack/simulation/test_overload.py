"""More users than the engines can serve, and more batch work than anybody asked for, in virtual time."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from overload import batch_beside, batch_surge, steady


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
    assert batch_beside({}).batch.served >= 0.95
