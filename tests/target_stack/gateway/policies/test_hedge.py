"""A second replica is asked only for the slowest few, and only by who asked for hedging."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from target_stack.gateway.policies.hedge import HedgeDelay, HedgeSettings

ON = HedgeSettings(kind="quantile", quantile=0.95, window=100, fewest=20)


def learned(settings: HedgeSettings, *seen: float) -> HedgeDelay:
    delay = HedgeDelay(settings)
    for each in seen:
        delay.saw(each)
    return delay


def test_it_is_off_by_default() -> None:
    assert learned(HedgeSettings(), *[0.1] * 1000).delay_s() is None


def test_with_too_few_answers_to_know_the_quantile_nothing_is_hedged() -> None:
    assert learned(ON, *[0.1] * 19).delay_s() is None
    assert learned(ON, *[0.1] * 20).delay_s() == 0.1


def test_the_delay_is_the_quantile_of_the_latest_answers() -> None:
    assert learned(ON, *[9.0] * 500, *map(float, range(1, 101))).delay_s() == 95.0


@given(st.lists(st.floats(0, 100), min_size=20, max_size=300))
def test_at_most_one_answer_in_twenty_takes_longer_than_the_delay(seen: list[float]) -> None:
    delay_s = learned(ON, *seen).delay_s()
    latest = seen[-100:]
    assert delay_s is not None
    assert sum(each > delay_s for each in latest) <= 0.05 * len(latest)


@pytest.mark.parametrize("wrong", [{"quantile": 0.0}, {"quantile": 1.5}, {"fewest": 0}, {"fewest": 300}])
def test_settings_that_cannot_work_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"policies\.hedge"):
        HedgeSettings(kind="quantile", **wrong)
