"""Only what another replica may answer is tried again, only while nobody has seen a part, and effects never twice."""

from __future__ import annotations

from typing import get_args

import pytest

from target_stack.gateway.policies.retry_classes import (
    CLASSES,
    Kind,
    RetrySettings,
    TriesSoFar,
    may_repeat,
    may_retry,
)

SAFE, ANY = RetrySettings(), RetrySettings(classes="any")
FRESH = TriesSoFar(made=1, seen=False, remaining_s=5.0)
ONCE_ONLY = {"rejected", "too_slow"}
SPENT = (
    TriesSoFar(1, seen=True, remaining_s=5.0),
    TriesSoFar(1, seen=False, remaining_s=0.0),
    TriesSoFar(2, seen=False, remaining_s=5.0),
)


def test_every_kind_of_failure_has_its_class() -> None:
    assert set(get_args(Kind)) == set(CLASSES)


@pytest.mark.parametrize("kind", sorted(set(get_args(Kind)) - ONCE_ONLY))
def test_a_replicas_failure_is_retried_while_fresh(kind: Kind) -> None:
    assert may_retry(SAFE, kind, FRESH, attempts=2)


@pytest.mark.parametrize("kind", sorted(ONCE_ONLY))
def test_a_bad_request_and_a_spent_deadline_are_never_retried(kind: Kind) -> None:
    assert not may_retry(SAFE, kind, FRESH, attempts=9)


@pytest.mark.parametrize("settings", [SAFE, ANY])
@pytest.mark.parametrize("so_far", SPENT)
@pytest.mark.parametrize("kind", get_args(Kind))
def test_nothing_is_retried_after_a_token_past_the_deadline_or_the_last_attempt(
    settings: RetrySettings, so_far: TriesSoFar, kind: Kind
) -> None:
    assert not may_retry(settings, kind, so_far, attempts=2)
    assert not may_repeat(settings, kind, so_far, 2, idempotent=True)


def test_the_mistake_is_to_retry_whatever_failed() -> None:
    assert all(may_retry(ANY, kind, FRESH, attempts=2) for kind in get_args(Kind))
    assert may_repeat(ANY, "unreachable", FRESH, 2, idempotent=False)


@pytest.mark.parametrize("reason", ["unreachable", "status_503", "malformed_reply", "timeout"])
def test_a_call_with_an_effect_is_repeated_only_with_a_key(reason: str) -> None:
    assert may_repeat(SAFE, reason, FRESH, 2, idempotent=True)
    assert not may_repeat(SAFE, reason, FRESH, 2, idempotent=False)


@pytest.mark.parametrize("settings", [SAFE, ANY])
@pytest.mark.parametrize("reason", ["breaker_open", "too_many_calls", "not_configured"])
def test_a_call_that_we_refused_to_make_is_not_made_a_moment_later(settings: RetrySettings, reason: str) -> None:
    assert not may_repeat(settings, reason, FRESH, 2, idempotent=True)
