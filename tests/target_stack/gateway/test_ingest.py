"""A document is added under its key, once, and said to be added when the store has it; the weak setting lies."""

from __future__ import annotations

from typing import Any

import pytest

from target_stack.gateway.policies.ingest import IngestSettings

NOTE = {"text": "Reference: m-4bf92f3577b3\nParcels to the islands leave on Tuesdays."}
KEY = {"idempotency-key": "k-1"}


def writes_of(stack: Any) -> list[str]:
    return [query for query in stack.store.queries if query.startswith("INSERT INTO uploads")]


async def test_a_document_is_embedded_and_written_before_it_is_said_to_be_stored(serve: Any) -> None:
    async with serve() as stack:
        reply = await stack.post("/v1/documents", json=NOTE, headers=KEY)
        assert (200, {"id": "k-1", "status": "stored"}) == (reply.status, reply.json)
        assert ["/v1/embeddings"] == [path for path, _, _ in stack.embedder.calls]
        (write,) = writes_of(stack)
        assert "ON CONFLICT (id) DO NOTHING" in write
        assert reply.headers["x-trace-id"] in write
        assert 'gateway_requests_total{route="ingest",outcome="ok"} 1' in (await stack.get("/metrics")).text


async def test_without_a_key_the_trace_is_the_key(serve: Any) -> None:
    async with serve() as stack:
        reply = await stack.post("/v1/documents", json=NOTE)
        assert reply.json["id"] == reply.headers["x-trace-id"]


async def test_the_same_document_again_is_stored_and_another_under_its_key_is_a_conflict(serve: Any) -> None:
    async with serve() as stack:
        stack.store.added = 0
        assert 200 == (await stack.post("/v1/documents", json=NOTE, headers=KEY)).status
        stack.store.rows = []
        assert 409 == (await stack.post("/v1/documents", json=NOTE, headers=KEY)).status


async def test_a_store_that_takes_nothing_is_told_and_leaves_searches_alone(serve: Any) -> None:
    async with serve() as stack:
        stack.store.bad_disk = True
        statuses = {(await stack.post("/v1/documents", json=NOTE)).status for _ in range(6)}
        assert {503} == statuses
        assert {"vector-store-writes"} == {event["dependency"] for event in stack.events("breaker_opened")}
        stack.store.bad_disk = False
        ask = {"messages": [{"role": "user", "content": "When?"}], "stream": False}
        assert "x-degraded" not in (await stack.post("/v1/rag", json=ask)).headers


async def test_the_weak_setting_says_so_although_nothing_was_written(serve: Any) -> None:
    async with serve(ingest={"acknowledge": "accepted"}) as stack:
        stack.store.bad_disk = True
        reply = await stack.post("/v1/documents", json=NOTE, headers=KEY)
        assert (200, "accepted") == (reply.status, reply.json["status"])


@pytest.mark.parametrize("body", [{}, {"text": ""}, {"text": 7}, {"text": "x" * 8001}])
async def test_what_is_no_text_is_refused_before_anything_is_asked(serve: Any, body: dict[str, Any]) -> None:
    async with serve() as stack:
        assert 400 == (await stack.post("/v1/documents", json=body)).status
        assert [] == stack.embedder.calls


async def test_without_a_store_the_route_says_so(serve: Any) -> None:
    async with serve(gateway={"vector_store": None}) as stack:
        assert 501 == (await stack.post("/v1/documents", json=NOTE)).status


def test_a_write_cannot_outlast_its_request() -> None:
    with pytest.raises(ValueError, match="write_s is longer than limit_s"):
        IngestSettings(limit_s=0.5, write_s=1.0)
