"""What a failure says about the replica."""

from __future__ import annotations

from typing import get_args

from target_stack.gateway.policies.retry_classes import Kind
from target_stack.gateway.retries import failure_of_status, trouble_of


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
