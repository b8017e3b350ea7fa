"""What is logged in detail, and when recall counts as lost."""

from __future__ import annotations

import random

import pytest

from target_stack.gateway.policies.observing import RecallSettings, RecallWatch, is_detailed


def test_one_in_a_hundred_traces_is_detailed_and_always_the_same_ones() -> None:
    dice = random.Random(3)
    traces = [f"{dice.getrandbits(128):032x}" for _ in range(20_000)]
    chosen = {trace for trace in traces if is_detailed(trace, 0.01)}
    assert 150 <= len(chosen) <= 250
    assert {trace for trace in traces if is_detailed(trace, 0.02)} > chosen


@pytest.mark.parametrize(("share", "detailed"), [(0.0, False), (1.0, True)])
def test_nobody_and_everybody(share: float, detailed: bool) -> None:
    assert [is_detailed(tail * 8, share) for tail in ("0000", "ffff")] == [detailed] * 2


def test_recall_is_lost_below_one_bound_and_back_above_another() -> None:
    watch = RecallWatch(RecallSettings(questions=4, window=8, drop_below=0.8, restore_at=0.95))
    assert watch.ratio is None
    good, bad, half = [True] * 4, [False] * 4, [True, True, True, False]
    told = [watch.round(hits) for hits in (good, good, bad, bad, good, half, good, good)]
    assert told == [None, None, "recall_dropped", None, None, None, None, "recall_restored"]


def test_an_empty_start_is_no_loss_and_a_lost_start_is_one() -> None:
    watch = RecallWatch(RecallSettings())
    assert watch.round([]) is None
    assert watch.round([False] * 4) == "recall_dropped"
