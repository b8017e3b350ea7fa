"""A canary gets its share and no more, a bad one is rolled back soon, and a good one nearly never."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from target_stack.gateway.policies.canary import (
    Arm,
    CanarySettings,
    CanaryWatch,
    Decision,
    LogMoments,
    Seen,
    gets_canary,
)

RULES = CanarySettings()
NAMES = st.text(min_size=1, max_size=8)


@dataclass(frozen=True)
class Habits:
    """How a release answers: median tokens, factor on the time to first token, share of broken answers."""

    tokens: float = 30.0
    slow: float = 1.0
    broken: float = 0.005

    def answer(self, dice: random.Random, load: float) -> Seen:
        whole = dice.random() >= self.broken
        tokens = round(self.tokens * math.exp(dice.gauss(0, 0.35)))
        return Seen(whole, 0.05 * self.slow * math.exp(load + dice.gauss(0, 0.2)) if whole else None, tokens)


@dataclass(frozen=True)
class Outcome:
    """How a rollout ended: the last decision, and how many requests the canary had by then."""

    last: Decision
    canary_requests: int


def rollout(canary: Habits, seed: int, rules: CanarySettings = RULES, rate_per_s: float = 50.0) -> Outcome:
    """A whole rollout in virtual time; both releases feel the same slowly drifting load."""
    dice, now, load, step, met = random.Random(seed), 0.0, 0.0, 0, 0
    watch = CanaryWatch(rules, step, now)
    while True:
        now += dice.expovariate(rate_per_s)
        load = 0.98 * load + dice.gauss(0, 0.06)
        chosen = dice.random() < watch.share
        met += chosen
        watch.saw((canary if chosen else Habits()).answer(dice, load), canary=chosen)
        decision = watch.decide(now)
        if decision.verb in ("roll_back", "finish"):
            return Outcome(decision, met)
        if decision.verb == "step":
            step += 1
            watch = CanaryWatch(rules, step, now, watch.stable if rules.steps[step] == 1 else None)


@given(st.floats(0.01, 1), NAMES)
def test_the_share_is_kept_within_what_chance_allows(share: float, canary: str) -> None:
    n = 2000
    found = sum(gets_canary(f"user-{number}", canary, share) for number in range(n))
    assert abs(found - n * share) <= 6 * math.sqrt(n * share * (1 - share)) + 1


@given(NAMES, NAMES, st.floats(0, 1), st.floats(0, 1))
def test_a_user_stays_where_they_are_and_a_growing_share_takes_nobody_out(
    user: str, canary: str, one: float, other: float
) -> None:
    small, large = sorted((one, other))
    assert gets_canary(user, canary, small) == gets_canary(user, canary, small)
    assert gets_canary(user, canary, large) or not gets_canary(user, canary, small)
    assert not gets_canary(user, canary, 0.0)
    assert gets_canary(user, canary, 1.0)


def test_another_canary_has_other_first_users() -> None:
    users = [f"user-{number}" for number in range(2000)]
    both = sum(gets_canary(user, "one", 0.05) and gets_canary(user, "two", 0.05) for user in users)
    assert both < 20


def test_a_release_like_the_stable_one_is_finished_and_false_alarms_are_rare() -> None:
    ends = [rollout(Habits(), seed).last for seed in range(120)]
    assert sum(end.verb == "roll_back" for end in ends) <= 2
    assert {end.verb for end in ends} <= {"finish", "roll_back"}


@pytest.mark.parametrize(
    ("habits", "guard"),
    [
        (Habits(tokens=90), "output_length"),
        (Habits(tokens=10), "output_length"),
        (Habits(slow=3), "ttft"),
        (Habits(broken=0.6), "errors"),
        (Habits(broken=1.0), "errors"),
    ],
    ids=["three times as long", "a third as long", "slow", "failing", "dead"],
)
def test_a_bad_release_is_rolled_back_by_the_guard_that_is_there_for_it(habits: Habits, guard: str) -> None:
    ends = [rollout(habits, seed) for seed in range(40)]
    assert {end.last.reason for end in ends} == {guard}
    assert max(end.canary_requests for end in ends) <= 24


def test_without_the_guard_on_length_a_release_that_talks_three_times_as_long_goes_to_everybody() -> None:
    weak = CanarySettings(length_guard="none")
    assert {rollout(Habits(tokens=90), seed, weak).last.verb for seed in range(20)} == {"finish"}


def test_a_release_that_is_a_little_beyond_a_margin_is_not_stepped_up() -> None:
    weak = CanarySettings(longest_step_s=30)
    ends = [rollout(Habits(tokens=30 * 1.6), seed, weak).last for seed in range(10)]
    assert {(end.verb, end.reason) for end in ends} <= {("roll_back", "output_length"), ("roll_back", "undecided")}


def watch_with(canary: Seen, stable: Seen, n: int, *, step: int = 0) -> CanaryWatch:
    reference = Arm()
    for _ in range(100):
        reference.add(stable)
    watch = CanaryWatch(RULES, step, 0.0, reference)
    for _ in range(n):
        watch.saw(canary, canary=True)
    return watch


GOOD, LONG, SLOW, LOST = Seen(True, 0.05, 30), Seen(True, 0.05, 90), Seen(True, 0.5, 30), Seen(False, None, 0)


def test_few_requests_decide_nothing() -> None:
    assert watch_with(LONG, GOOD, RULES.minimum_requests - 1).decide(1.0).verb == "hold"
    assert watch_with(LONG, GOOD, RULES.minimum_requests).decide(1.0) == Decision(
        "roll_back", "output_length", pytest.approx(91 / 31)
    )


def test_a_step_needs_enough_requests_and_enough_time() -> None:
    assert watch_with(GOOD, GOOD, RULES.step_requests - 1).decide(RULES.step_s).verb == "hold"
    assert watch_with(GOOD, GOOD, RULES.step_requests).decide(RULES.step_s - 0.1).verb == "hold"
    assert watch_with(GOOD, GOOD, RULES.step_requests).decide(RULES.step_s).verb == "step"
    assert watch_with(GOOD, GOOD, RULES.step_requests, step=3).decide(RULES.step_s).verb == "finish"


def test_a_canary_that_nobody_uses_ends_at_its_limit() -> None:
    watch = CanaryWatch(RULES, 0, 0.0)
    assert watch.decide(RULES.longest_step_s - 1).verb == "hold"
    assert watch.decide(RULES.longest_step_s) == Decision("roll_back", "undecided")


def test_for_everybody_there_is_no_first_token_to_compare_with_at_the_same_time() -> None:
    assert watch_with(SLOW, GOOD, 50, step=3).decide(RULES.step_s).verb == "finish"
    assert watch_with(SLOW, GOOD, 50, step=2).decide(RULES.step_s).reason == "ttft"
    assert watch_with(LONG, GOOD, 50, step=3).decide(RULES.step_s).reason == "output_length"
    assert watch_with(LOST, GOOD, 50, step=3).decide(RULES.step_s).reason == "errors"


def test_where_the_stable_release_fails_as_much_the_canary_is_not_blamed() -> None:
    assert watch_with(LOST, LOST, 50).decide(RULES.step_s).verb == "step"


@given(st.lists(st.floats(0.001, 1000), min_size=2, max_size=50))
def test_moments_are_those_of_the_logarithms(values: list[float]) -> None:
    moments, logs = LogMoments(), [math.log(value) for value in values]
    for value in values:
        moments.add(value)
    mean = sum(logs) / len(logs)
    assert moments.mean == pytest.approx(mean, abs=1e-9)
    assert moments.variance == pytest.approx(sum((log - mean) ** 2 for log in logs) / (len(logs) - 1), abs=1e-6)


@pytest.mark.parametrize(
    "settings",
    [
        *({"steps": steps} for steps in ((), (0.05, 0.05, 1.0), (0.0, 1.0), (0.05, 0.5))),
        *({"length_factor": 1.0}, {"false_alarms": 0.0}, {"step_requests": 5}, {"minimum_requests": 1}),
    ],
)
def test_settings_that_could_not_work_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"policies\.canary"):
        CanarySettings(**settings)  # type: ignore[arg-type]  # wrong on purpose
