"""Calls to other services are repeated when that is safe, and every repeat is paid from the one budget."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.system
KEY = {"idempotency-key": "k1"}


@pytest.mark.parametrize("headers", [KEY, {}])
async def test_a_tool_is_called_again_under_its_key_and_every_call_has_one(serve: Any, headers: dict[str, str]) -> None:
    async with serve() as stack:
        stack.tools.status = 500
        reply = await stack.post("/v1/tools/open_ticket", json={}, headers=headers)
        assert (reply.status, reply.json["error"]["code"], len(stack.tools.calls)) == (503, "status_500", 2)
        assert len({body["params"]["_meta"]["idempotency-key"] for _, body, _ in stack.tools.calls}) == 1


async def test_an_embedding_only_reads_and_is_asked_for_again(serve: Any) -> None:
    async with serve() as stack:
        stack.embedder.status = 503
        await stack.post("/v1/embeddings", json={"input": ["a"]})
        assert len(stack.embedder.calls) == 2


async def test_repeats_and_resends_and_retries_are_paid_from_one_budget(serve: Any) -> None:
    async with serve(retry_budget={"burst": 1}, breaker={"kind": "none"}) as stack:
        stack.tools.status = 500
        for _ in range(3):
            await stack.post("/v1/tools/open_ticket", json={}, headers=KEY)
        assert len(stack.tools.calls) == 4
        stack.a.script = stack.b.script = (503,)
        await stack.chat()
        assert len(stack.a.asked) + len(stack.b.asked) == 1
        assert (await stack.chat(headers={"x-stainless-retry-count": "1"})).status == 503


async def test_a_pause_longer_than_the_deadline_is_not_waited_for(serve: Any) -> None:
    async with serve() as stack:
        stack.tools.status, stack.tools.reply_headers = 503, {"Retry-After": "60"}
        reply = await stack.post("/v1/tools/open_ticket", json={}, headers=KEY)
        assert (len(stack.tools.calls), reply.took_s < 0.1) == (1, True)


async def test_a_pause_that_fits_is_kept(serve: Any) -> None:
    async with serve() as stack:
        stack.tools.status, stack.tools.reply_headers = 503, {"Retry-After": "2"}
        reply = await stack.post("/v1/tools/open_ticket", json={}, headers=KEY)
        assert (len(stack.tools.calls), reply.took_s >= 2.0) == (2, True)


async def test_resends_of_a_services_client_are_counted(serve: Any) -> None:
    async with serve(attempts=1, retry={"hop_resends": 2}) as stack:
        stack.tools.status = 500
        await stack.post("/v1/tools/open_ticket", json={})
        assert len(stack.tools.calls) == 3
        calls = stack.gateway.telemetry.metrics.upstream_calls
        assert [calls.value("tool", "tool", kind) for kind in ("first", "hop_resend")] == [1, 2]
