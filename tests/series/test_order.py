"""Seeds of a series, and which run is due."""

from hypothesis import given
from hypothesis import strategies as st

from chaos.series.order import Entry, came_to_its_end, seed_of
from tests.series.made import folder, run, series

SEEDS = st.integers(min_value=0, max_value=2**32)


def test_the_first_run_is_the_one_that_would_have_been_made_without_repetition() -> None:
    assert 7 == seed_of(7, 1)


def test_the_rule_of_the_seeds_is_the_one_that_is_stated() -> None:
    """`printf 7/run/2 | sha256sum | cut -c1-8` says the same."""
    assert int("abccdd19", 16) == seed_of(7, 2)


@given(SEEDS)
def test_series_with_neighbouring_seeds_share_no_run(seed: int) -> None:
    one, other = ({seed_of(s, number) for number in range(1, 200)} for s in (seed, seed + 1))
    assert set() == one & other


def test_runs_are_due_in_order_until_all_are_done() -> None:
    assert [1, 3, None] == [series("", most=3).due(), series("ur", most=3).due(), series("uru").due()]


def test_a_run_that_is_missing_in_the_middle_is_due_first() -> None:
    lacking = series("u", most=3).with_run(Entry(3, folder(3), run("u", 3)))
    assert (2, [1, 3]) == (lacking.due(), [entry.number for entry in lacking.entries])


def test_a_hunt_is_over_with_its_first_refuted_run_and_a_series_is_not() -> None:
    assert None is series("uir", most=9, changes={"hunt": True}).due()
    assert 4 == series("uir", most=9).due()
    assert 4 == series("uii", most=9, changes={"hunt": True}).due()


def test_a_run_ended_from_outside_did_not_come_to_its_end() -> None:
    assert [True, True, False] == [came_to_its_end(run(letter)) for letter in "uig"]


def test_a_run_counts_once_whatever_is_learnt_of_it_later() -> None:
    twice = series("uu").with_run(Entry(2, folder(2), run("u", 2), whole=False))
    assert [True, False] == [entry.whole for entry in twice.entries]


def test_what_was_cut_short_is_remembered_once() -> None:
    assert ("x", "y") == series("").without("x").without("y").without("x").cut_short
