"""Only what another replica may answer is retried, and only while the client has seen nothing."""

from __future__ import annotations

from typing import get_args

import pytest

from target_stack.gateway.retries import Kind, TriesSoFar, failure_of_status, may_retry, trouble_of

FRESH = TriesSoFar(made=1, content_sent=False, remaining_s=5.0)
ONCE_ONLY = {"rejected", "too_slow"}


@pytest.mark.parametrize("kind", sorted(set(get_args(Kind)) - ONCE_ONLY))
def test_a_replicas_failure_is_retried_while_fresh(kind: Kind) -> None:
    assert may_retry(kind, FRESH, attempts=2)


@pytest.mark.parametrize("kind", sorted(ONCE_ONLY))
def test_a_bad_request_and_a_spent_deadline_are_never_retried(kind: Kind) -> None:
    assert not may_retry(kind, FRESH, attempts=9)


@pytest.mark.parametrize("kind", get_args(Kind))
def test_nothing_is_retried_after_content_past_the_deadline_or_the_last_attempt(kind: Kind) -> None:
    assert not may_retry(kind, TriesSoFar(1, content_sent=True, remaining_s=5.0), attempts=2)
    assert not may_retry(kind, TriesSoFar(1, content_sent=False, remaining_s=0.0), attempts=2)
    assert not may_retry(kind, TriesSoFar(2, content_sent=False, remaining_s=5.0), attempts=2)


def test_statuses_are_sorted_by_what_they_mean() -> None:
    found = {status: failure_of_status(status) for status in (400, 404, 422, 429, 500, 502, 503, 504)}
    assert found == {
        400: "rejected",
        404: "rejected",
        422: "rejected",
        429: "busy",
        500: "error",
        502: "bad_gateway",
        503: "busy",
        504: "bad_gateway",
    }


def test_busy_and_refusing_replicas_are_not_broken() -> None:
    assert {kind for kind in get_args(Kind) if trouble_of(kind) is None} == {"busy", "rejected", "too_slow"}
