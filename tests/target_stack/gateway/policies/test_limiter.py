"""The concurrency limit grows slowly while it is used, shrinks fast when answers are slow, and stays in its bounds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from target_stack.gateway.policies.limiter import AimdLimiter
from target_stack.gateway.policies.settings import LimiterSettings

RULES = LimiterSettings(initial=20, minimum=4, maximum=40, target_s=0.5, decrease=0.5, cooldown_s=1.0)


def test_one_limits_worth_of_good_answers_adds_one() -> None:
    limiter = AimdLimiter(RULES)
    for _ in range(21):
        limiter.answered(0.0, 0.1, in_flight=20)
    assert limiter.limit == 21


def test_an_unused_limit_does_not_grow() -> None:
    limiter = AimdLimiter(RULES)
    for _ in range(1000):
        limiter.answered(0.0, 0.1, in_flight=3)
    assert limiter.limit == 20


def test_many_slow_answers_of_one_congestion_shrink_it_once() -> None:
    limiter = AimdLimiter(RULES)
    for _ in range(50):
        limiter.answered(0.0, 0.9, in_flight=20)
    assert limiter.limit == 10
    limiter.refused(1.0)
    assert limiter.limit == 5


@given(st.lists(st.tuples(st.floats(0, 2), st.floats(0, 2), st.integers(0, 60), st.booleans()), max_size=300))
def test_it_never_leaves_its_bounds(history: list[tuple[float, float, int, bool]]) -> None:
    limiter, now = AimdLimiter(RULES), 0.0
    for wait, took, in_flight, refused in history:
        now += wait
        limiter.refused(now) if refused else limiter.answered(now, took, in_flight)
        assert RULES.minimum <= limiter.limit <= RULES.maximum


def test_equal_bounds_make_a_fixed_limit() -> None:
    limiter = AimdLimiter(LimiterSettings(initial=8, minimum=8, maximum=8))
    for now in range(50):
        limiter.refused(float(now))
        limiter.answered(float(now), 0.01, in_flight=8)
    assert limiter.limit == 8
