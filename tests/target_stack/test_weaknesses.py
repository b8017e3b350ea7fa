"""The catalogue of mistakes."""

from __future__ import annotations

import pytest

from target_stack.weaknesses import WEAKNESSES, UnknownWeakness, find_weaknesses, plant


def test_names_are_unique_and_every_one_says_what_it_does():
    assert len({w.name for w in WEAKNESSES}) == len(WEAKNESSES)
    assert all(w.summary.endswith(".") for w in WEAKNESSES)


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(UnknownWeakness, match="'braker_mising'; did you mean 'breaker_missing'"):
        find_weaknesses(["braker_mising"])


def test_breaker_missing_takes_the_breakers_and_leaves_the_rest():
    planted = plant(find_weaknesses(["breaker_missing"]), "gateway", {"listen": "x", "policies": {"attempts": 2}})
    assert planted == {"listen": "x", "policies": {"attempts": 2, "breaker": {"kind": "none"}}}


def test_retries_without_budget_means_four_tries_without_pause_or_budget():
    planted = plant(find_weaknesses(["retries_without_budget"]), "gateway", {})
    assert planted["policies"] == {
        "retry_budget": {"kind": "unlimited"},
        "attempts": 4,
        "backoff": {"kind": "none"},
    }


def test_two_weaknesses_add_up_and_a_repeated_one_counts_once():
    both = find_weaknesses(["breaker_missing", "retries_without_budget", "breaker_missing"])
    assert [w.name for w in both] == ["breaker_missing", "retries_without_budget"]
    assert set(plant(both, "gateway", {})["policies"]) == {"breaker", "retry_budget", "attempts", "backoff"}


@pytest.mark.parametrize("weakness", WEAKNESSES, ids=lambda w: w.name)
def test_planting_leaves_the_original_and_other_components_alone(weakness):
    original = {"policies": {}}
    plant([weakness], weakness.component, original)
    assert original == {"policies": {}}
    assert plant([weakness], "embedder", original) == original
