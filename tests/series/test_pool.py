"""Many runs to one answer: refuted over too few over upheld, and what each hypothesis found."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.series.order import Entry, Series
from chaos.series.pool import Repeated, pool
from chaos.verdict.document import from_json
from chaos.verdict.outcome import worst
from chaos.verdict.statistics import quantile, wilson
from tests.series.made import series
from tests.verdict.story import CASES, JOURNALS

LETTERS = st.text(alphabet="uri", min_size=1, max_size=12)


def of(made: Series, name: str) -> Repeated:
    return next(one for one in pool(made).hypotheses if one.name == name)


@pytest.mark.parametrize(
    ("letters", "truth", "code"),
    [
        ("u", "upheld", 0),
        ("uuuuu", "upheld", 0),
        ("uuuui", "upheld", 0),
        ("uuuii", "inconclusive", 2),
        ("iii", "inconclusive", 2),
        ("ui", "inconclusive", 2),
        ("uuuur", "refuted", 1),
        ("iiiir", "refuted", 1),
        ("uuuug", "upheld", 3),
        ("rg", "refuted", 3),
    ],
)
def test_each_mixture_of_runs_has_its_answer_and_exit_code(letters: str, truth: str, code: int) -> None:
    pooled = pool(series(letters))
    assert (truth, code) == (pooled.verdict, pooled.exit_code)


@given(LETTERS)
def test_the_answer_is_refuted_exactly_when_a_run_is(letters: str) -> None:
    assert ("r" in letters) == (pool(series(letters)).verdict == "refuted")


@given(LETTERS)
def test_an_undecided_run_never_counts_as_one_that_held(letters: str) -> None:
    """Not for the runs, and not for any hypothesis."""
    pooled = pool(series(letters))
    decided = letters.replace("i", "")
    assert (pooled.tally.upheld, pooled.tally.decided) == (letters.count("u"), len(decided))
    assert (wilson(decided.count("u"), len(decided)) if decided else None) == pooled.tally.interval()
    assert all(one.tally.inconclusive >= letters.count("i") for one in pooled.hypotheses)


@given(LETTERS)
def test_no_better_exit_code_than_that_of_a_run_that_was_stopped(letters: str) -> None:
    assert worst([3, pool(series(letters)).exit_code]) == pool(series(letters + "g")).exit_code == 3


def test_a_series_that_is_not_done_is_never_upheld_and_says_how_to_go_on() -> None:
    pooled = pool(series("uuuu", most=5))
    assert ("inconclusive", "4 of 5 runs done, none of them refuted") == (pooled.verdict, pooled.why)
    assert "--resume" in str(pooled.to_settle)
    assert "refuted" == pool(series("ur", most=5)).verdict


def test_no_refuted_run_says_which_failure_rate_is_excluded() -> None:
    assert "a failure in more than 4.95% of runs is excluded with 95% confidence" in pool(series("u" * 59)).why


def test_the_refuted_run_and_its_seed_are_named() -> None:
    made = series("uir")
    first = made.first_refuted
    assert first is not None
    assert f"1 of 2 decided runs refuted, first run 3 (seed {first.seed}): users are served" in pool(made).why


def test_the_numbers_of_a_run_that_cannot_be_trusted_are_left_out() -> None:
    assert 2 == len(of(series("uiu"), "no slow failure").values)


@given(st.integers(min_value=1, max_value=12))
def test_the_typical_run_is_the_median_and_the_worst_the_one_against_the_bound(runs: int) -> None:
    slow = of(series("u" * runs), "no slow failure")
    assert (quantile(np.array(slow.values), 0.5), max(slow.values)) == (slow.typical, slow.worst)
    served = of(series("u" * runs), "users are served")
    assert min(served.values) == served.worst


def test_what_never_came_is_the_worst_of_all() -> None:
    slow = of(series("uru"), "no slow failure")
    assert (3, math.inf) == (len(slow.values), slow.worst)
    assert math.isfinite(slow.typical or math.inf)


def test_requests_are_added_up_only_where_the_value_is_a_share_of_them() -> None:
    pooled = pool(series("uuu"))
    assert ["users are served"] == [one.name for one in pooled.hypotheses if one.together]
    served = of(series("uuu"), "users are served").together
    assert served is not None
    assert (1.0, 900) == (served.value, served.n)


def test_requests_of_runs_that_differ_are_less_than_as_many_independent_ones() -> None:
    mixed = of(series("uuru"), "users are served").together
    assert mixed is not None
    low, high = wilson(mixed.value * mixed.n, mixed.n)
    assert mixed.interval[0] < low < high < mixed.interval[1]


def test_stored_runs_are_pooled_as_they_were_judged() -> None:
    """Every ending a run can have, in one series."""
    stored = [from_json(json.loads((JOURNALS / case / "verdict.json").read_text())) for case in sorted(CASES)]
    entries = tuple(Entry(n, verdict.run, verdict) for n, verdict in enumerate(stored, start=1))
    pooled = pool(replace(series("u" * len(stored)), entries=entries))
    upheld = sum(verdict.verdict == "upheld" for verdict in stored)
    assert ("refuted", 4, upheld) == (pooled.verdict, pooled.exit_code, pooled.tally.upheld)
    assert [h.name for h in stored[0].hypotheses] == [one.name for one in pooled.hypotheses]


def test_no_run_is_no_answer() -> None:
    pooled = pool(series("", most=3))
    assert ("inconclusive", 2, ()) == (pooled.verdict, pooled.exit_code, pooled.hypotheses)


def test_two_bounds_have_no_single_bad_side() -> None:
    made = series("uu")
    both = [
        replace(
            entry,
            verdict=replace(
                entry.verdict,
                hypotheses=tuple(replace(h, bound={"at_least": 0.1, "at_most": 1.0}) for h in entry.verdict.hypotheses),
            ),
        )
        for entry in made.entries
    ]
    assert {None} == {one.worst for one in pool(replace(made, entries=tuple(both))).hypotheses}
