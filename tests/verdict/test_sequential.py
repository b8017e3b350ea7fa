"""Evidence that is weighed after every outcome: seldom wrong, soon right, and true to its definition."""

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.verdict.sequential import STOP_AT, ChangeWatch
from tests.verdict.trouble import BASELINE, RISEN, USUAL, fixed_size, tripped_after

SEEDS = range(40)
"""A slice of the matrix `sequential` of `make soak`."""


def watched(outcomes: list[bool], rate: float = 20.0, **given_: object) -> ChangeWatch:
    watch = ChangeWatch(0.01, 0.03, **{"length_s": 50.0, "moments": (15.0,), **given_})  # type: ignore[arg-type]  # literals
    for number, bad in enumerate(outcomes):
        watch.see(number / rate, bad=bad)
    return watch


def test_the_test_that_is_asked_once_takes_656() -> None:
    assert fixed_size() == 656


@pytest.mark.parametrize("begins", [0, BASELINE, BASELINE + 137])
def test_ten_times_the_usual_failures_are_stopped_early(begins: int) -> None:
    """From the start, from a planned change on, and at a moment that nobody planned."""
    took = [tripped_after(seed, RISEN, begins) for seed in SEEDS]
    late = [t for t in took if t is not None]
    assert len(late) == len(took)
    assert sum(late) / len(late) <= 0.15 * fixed_size()


def test_the_usual_failures_stop_hardly_any_run() -> None:
    assert sum(tripped_after(seed, USUAL, 0) is not None for seed in SEEDS) <= 1


@given(st.lists(st.booleans(), max_size=12), st.floats(0.001, 0.2), st.floats(1.5, 4.5))
def test_the_next_outcome_cannot_be_expected_to_raise_the_evidence(
    outcomes: list[bool], usual: float, times: float
) -> None:
    """While it is bad with the usual probability: the martingale that the promise rests on."""
    after = []
    for bad in (True, False):
        watch = ChangeWatch(usual, usual * times, length_s=1.0, moments=(0.2,))
        for number, each in enumerate([*outcomes, bad]):
            watch.see(number / 20, bad=each)
        after.append(watch.evidence)
    before = ChangeWatch(usual, usual * times, length_s=1.0, moments=(0.2,))
    for number, each in enumerate(outcomes):
        before.see(number / 20, bad=each)
    assert before.evidence == pytest.approx(usual * after[0] + (1 - usual) * after[1])


def test_a_quiet_baseline_does_not_use_the_evidence_up() -> None:
    """Six hundred good outcomes, and a handful of bad ones still is enough."""
    assert watched([False] * 300 + [True] * 5).evidence > STOP_AT
    assert watched([False] * 600 + [True] * 6).evidence > STOP_AT


def test_suspects_are_the_outcomes_since_trouble_began() -> None:
    watch = watched([False] * 300 + [True, False, True, True])
    assert watch.suspects == (4, 3)


def test_each_bad_outcome_raises_the_evidence_and_each_good_one_lowers_it() -> None:
    rising = [watched([True] * n).evidence for n in range(1, 6)]
    assert all(a < b for a, b in pairwise(rising))
    assert watched([True] * 5 + [False]).evidence < rising[-1]
    assert math.isclose(watched([]).evidence, 1.0)


@pytest.mark.parametrize(("usual", "limit"), [(0.0, 0.1), (0.1, 0.1), (0.2, 0.1), (0.1, 1.0)])
def test_what_leaves_no_room_is_refused(usual: float, limit: float) -> None:
    with pytest.raises(ValueError, match="does not hold"):
        ChangeWatch(usual, limit, length_s=10.0)
