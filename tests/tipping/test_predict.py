"""The closed forms: values worked out by hand, limits, and agreement with the model event by event."""

from __future__ import annotations

import math

import pytest

from chaos.tipping.predict import (
    NEVER,
    Clients,
    amplification,
    critical_backlog,
    critical_load,
    recovery_s,
    tipping_length_of_cut_s,
    tipping_length_of_rise_s,
)

FOUR = Clients(timeout_s=1.0, attempts=4)


@pytest.mark.parametrize(
    ("attempts", "budget", "wanted"), [(1, None, 1.0), (4, None, 4.0), (4, 0.1, 1.1), (2, 5.0, 2.0), (1, 0.1, 1.0)]
)
def test_amplification_is_the_smaller_of_both_bounds(attempts: int, budget: float | None, wanted: float) -> None:
    assert wanted == amplification(attempts, budget)
    assert pytest.approx(1 / wanted) == critical_load(Clients(1.0, attempts, budget=budget))


def test_a_line_is_critical_where_its_last_one_is_served_too_late() -> None:
    assert (99.0, 0.0) == (critical_backlog(100.0, FOUR), critical_backlog(2.0, Clients(0.1, 4)))
    assert pytest.approx(50.0) == critical_backlog(100.0, FOUR, slots=50)


def test_recovery_drains_the_excess_with_what_capacity_is_left() -> None:
    assert 20.0 == recovery_s(500.0, 100.0, 1.0, 80.0)
    assert 0.0 == recovery_s(99.0, 100.0, 1.0, 400.0)
    assert NEVER == recovery_s(500.0, 100.0, 1.0, 100.0)


def test_no_cut_tips_a_stack_that_it_does_not_overload_or_that_cannot_be_held_down() -> None:
    assert NEVER == tipping_length_of_cut_s(30.0, 100.0, 0.4, FOUR)
    assert NEVER == tipping_length_of_cut_s(24.0, 100.0, 0.0, FOUR)
    assert NEVER == tipping_length_of_cut_s(60.0, 100.0, 0.4, FOUR, queue=99)
    assert NEVER == tipping_length_of_rise_s(30.0, 100.0, 3.0, FOUR)


@pytest.mark.parametrize(("load", "prototype_s"), [(0.5, 7.2), (0.7, 2.2), (0.8, 2.0), (0.9, 2.0)])
def test_the_form_without_dice_is_near_what_a_prototype_with_dice_measured(load: float, prototype_s: float) -> None:
    """An independent simulation with Poisson arrivals (k = 4, 40 % left, T = 1 s, mu = 100/s): chance moves so short a
    trigger by a fifth, so this is a check of size and order, not of exactness.
    """
    predicted = tipping_length_of_cut_s(100 * load, 100.0, 0.4, FOUR)
    assert 0.75 < predicted / prototype_s < 1.25


def test_a_longer_patience_and_a_pause_before_resends_ask_for_a_longer_trigger() -> None:
    lengths = [
        tipping_length_of_cut_s(70.0, 100.0, 0.2, clients)
        for clients in (FOUR, Clients(1.0, 4, backoff_s=0.5), Clients(2.0, 4, backoff_s=0.5))
    ]
    assert sorted(lengths) == lengths
    assert math.isfinite(lengths[-1])
