"""Tool calls through a whole gateway: refusals, lost replies, keys."""

from __future__ import annotations

from typing import Any

import pytest


def keys_of(stack: Any) -> list[str]:
    return [body["params"]["_meta"]["idempotency-key"] for _, body, _ in stack.tools.calls]


async def test_a_lost_reply_is_asked_for_again_under_the_same_key(serve: Any) -> None:
    async with serve() as stack:
        stack.tools.losses = 1
        reply = await stack.post("/v1/tools/open_ticket", json={}, headers={"idempotency-key": "k1"})
        assert (reply.status, keys_of(stack)) == (200, ["k1", "k1"])
        calls = stack.gateway.telemetry.metrics.upstream_calls
        assert (calls.value("tool", "tool", "first"), calls.value("tool", "tool", "retry")) == (1, 1)


async def test_a_client_without_a_key_gets_one_that_no_other_request_has(serve: Any) -> None:
    async with serve() as stack:
        trace = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01"}
        stack.tools.losses = 1
        for _ in range(2):
            assert (await stack.post("/v1/tools/open_ticket", json={}, headers=trace)).status == 200
        first, again, other = keys_of(stack)
        assert first == again != other


async def test_the_weak_setting_makes_each_try_a_call_of_its_own(serve: Any) -> None:
    async with serve(tool_key="per_try") as stack:
        stack.tools.losses = 1
        await stack.post("/v1/tools/open_ticket", json={}, headers={"idempotency-key": "k1"})
        assert keys_of(stack) == ["k1-try1", "k1-try2"]


async def test_a_call_that_loses_every_reply_ends_after_two_tries(serve: Any) -> None:
    async with serve() as stack:
        stack.tools.losses = 9
        reply = await stack.post("/v1/tools/open_ticket", json={})
        assert (reply.status, reply.json["error"]["code"], len(stack.tools.calls)) == (503, "lost", 2)


async def test_no_call_is_made_again_when_the_budget_is_spent(serve: Any) -> None:
    async with serve(retry_budget={"burst": 0.0, "ratio": 0.0}) as stack:
        stack.tools.losses = 1
        assert (await stack.post("/v1/tools/open_ticket", json={})).status == 503
        assert len(stack.tools.calls) == 1


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("permission_denied", 403),
        ("unknown_tool", 404),
        ("not_found", 404),
        ("conflict", 409),
        ("invalid_argument", 400),
    ],
)
async def test_a_refusal_is_passed_on_with_its_status_and_says_nothing_against_the_tools(
    serve: Any, code: str, status: int
) -> None:
    async with serve() as stack:
        stack.tools.refusal = {"error": {"code": code, "message": "no", "argument": "order"}}
        for _ in range(6):  # more than any breaker bears of failures
            reply = await stack.post("/v1/tools/open_ticket", json={})
        assert (reply.status, reply.json) == (status, stack.tools.refusal)
        assert stack.events() == []


LISTED = {"name": "open_ticket", "outputSchema": {"required": ["ticket"]}}


async def test_a_result_that_breaks_the_tools_own_schema_is_asked_for_again_and_then_told_as_a_failure(
    serve: Any,
) -> None:
    async with serve() as stack:
        stack.tools.listing = [LISTED]
        reply = await stack.post("/v1/tools/open_ticket", json={}, headers={"idempotency-key": "k1"})
        assert (reply.status, reply.json["error"]["code"], keys_of(stack)) == (503, "wrong_schema", ["k1", "k1"])


async def test_the_weak_setting_passes_any_result_on(serve: Any) -> None:
    async with serve(tool_rules={"results": "trusted"}) as stack:
        stack.tools.listing = [LISTED]
        reply = await stack.post("/v1/tools/open_ticket", json={})
        assert (reply.status, reply.json) == (200, {"echo": {}})


async def test_an_error_without_a_code_says_nothing_about_the_deed_so_it_is_asked_for_again(serve: Any) -> None:
    async with serve() as stack:
        stack.tools.refusal = {"what": "out of paper"}
        reply = await stack.post("/v1/tools/open_ticket", json={})
        assert (reply.status, reply.json["error"]["code"], len(stack.tools.calls)) == (503, "tool_error", 2)
