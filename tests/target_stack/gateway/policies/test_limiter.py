"""The concurrency limit grows slowly while it is used, shrinks fast when answers are slow, and stays in its bounds."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from reference_limiter import mismatch

from target_stack.gateway.policies.limiter import AimdLimiter, GradientLimiter, LimiterSettings, make_limiter

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


def test_limiters_do_what_an_independent_model_recomputes_from_all_observations() -> None:
    """A sample; `make soak SOAK=policies` plays 100,000 sequences."""
    assert [] == [why for seed in range(2000) if (why := mismatch(seed))]


def gradient(usual_s: float = 0.1) -> GradientLimiter:
    """In use at a limit of 20, with first tokens that usually take so long."""
    limiter = GradientLimiter(
        LimiterSettings(kind="gradient", initial=20, minimum=4, maximum=20, tolerance=1.5, smoothing=0.2)
    )
    for _ in range(100):
        limiter.answered(0.0, usual_s, in_flight=20)
    assert limiter.limit == 20
    return limiter


def test_a_gradient_limit_shrinks_when_first_tokens_come_later_than_they_used_to() -> None:
    limiter = gradient()
    for _ in range(10):
        limiter.answered(0.0, 0.4, in_flight=20)
    assert limiter.limit < 16


def test_a_gradient_limit_takes_what_is_within_tolerance_for_usual() -> None:
    limiter = gradient()
    for _ in range(100):
        limiter.answered(0.0, 0.14, in_flight=20)
    assert limiter.limit == 20


def test_a_gradient_limit_forgets_a_slow_time_faster_than_it_learnt_it() -> None:
    limiter = gradient(usual_s=2.0)
    for _ in range(60):
        limiter.answered(0.0, 0.1, in_flight=20)
    for _ in range(10):
        limiter.answered(0.0, 0.8, in_flight=20)
    assert limiter.limit < 16


def test_a_busy_engine_shrinks_either_kind_once_a_cool_down() -> None:
    for kind in ("aimd", "gradient"):
        limiter = make_limiter(LimiterSettings(kind=kind, initial=20, decrease=0.5, cooldown_s=1.0))  # type: ignore[arg-type]  # a word of kind
        for at in (0.0, 0.5, 0.9, 1.0):
            limiter.refused(at)
        assert limiter.limit == 8


@pytest.mark.parametrize("kind", ["aimd", "gradient"])
@given(history=st.lists(st.tuples(st.floats(0, 2), st.floats(0, 2), st.integers(0, 60), st.booleans()), max_size=300))
def test_it_never_leaves_its_bounds(kind: str, history: list[tuple[float, float, int, bool]]) -> None:
    rules = LimiterSettings(kind=kind, initial=20, minimum=4, maximum=40)  # type: ignore[arg-type]  # a word of kind
    limiter, now = make_limiter(rules), 0.0
    for wait, took, in_flight, refused in history:
        now += wait
        limiter.refused(now) if refused else limiter.answered(now, took, in_flight)
        assert rules.minimum <= limiter.limit <= rules.maximum


def test_equal_bounds_make_a_fixed_limit() -> None:
    limiter = AimdLimiter(LimiterSettings(initial=8, minimum=8, maximum=8))
    for now in range(50):
        limiter.refused(float(now))
        limiter.answered(float(now), 0.01, in_flight=8)
    assert limiter.limit == 8
