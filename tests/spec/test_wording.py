"""Suggestions are near or absent, and quoted values fit a headline."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaos.spec.wording import edit_distance, listed, nearest, shown, suggestion

WORDS = st.text(alphabet="abcd_", max_size=8)


@pytest.mark.parametrize(
    ("distance", "left", "right"),
    [
        (0, "lease", "lease"),
        (1, "laese", "lease"),
        (1, "proces_kill", "process_kill"),
        (3, "kitten", "sitting"),
        (4, "", "kind"),
    ],
)
def test_distance_counts_slips_of_the_keyboard(distance, left, right):
    assert distance == edit_distance(left, right)


@given(left=WORDS, right=WORDS)
def test_distance_is_symmetric_and_bounded_by_lengths(left, right):
    distance = edit_distance(left, right)
    assert distance == edit_distance(right, left)
    assert abs(len(left) - len(right)) <= distance <= max(len(left), len(right))
    assert (distance == 0) == (left == right)


@pytest.mark.parametrize(
    ("expected", "name"),
    [("for", "fro"), ("process_kill", "proces_kill"), (None, "at"), (None, "banana"), (None, ""), (None, "x" * 10**6)],
)
def test_no_guess_is_better_than_a_wild_one(expected, name):
    assert expected == nearest(name, ["for", "process_kill", "target"])


def test_a_short_list_is_shown_whole_and_a_long_one_not_at_all():
    assert suggestion("banana", ["for", "at"]) == "use `for` or `at`"
    assert suggestion("banana", [f"name_{i}" for i in range(20)]) is None
    assert suggestion("banana", []) is None


def test_values_are_quoted_on_one_line_and_cut():
    assert shown("a\n  b") == "`a b`"
    assert len(shown("x" * 500)) == 26
    assert listed(["a", "b", "c"]) == "`a`, `b` or `c`"
