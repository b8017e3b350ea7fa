"""The tools and the embedder over real HTTP."""

from __future__ import annotations

import asyncio
import json

import pytest
from aiohttp.test_utils import TestClient, TestServer

from target_stack.embedder.embedding import HashingEmbedder
from target_stack.embedder.main import make_app as embedder_app
from target_stack.fixtures import fixtures_dir, read_lines
from target_stack.tools.main import make_app
from target_stack.tools.store import ToolStore

pytestmark = pytest.mark.system


def answers(app, *requests):
    """Status and text of each request."""

    async def all_of_them():
        found = []
        async with TestClient(TestServer(app)) as client:
            for method, path, body in requests:
                async with client.request(method, path, data=body) as reply:
                    found.append((reply.status, await reply.text()))
        return found

    return asyncio.run(all_of_them())


def tools():
    return make_app(ToolStore(None, read_lines(fixtures_dir() / "documents" / "orders.jsonl")))


def test_every_call_of_the_prompt_set_is_answered_as_expected():
    calls = list(read_lines(fixtures_dir() / "prompts" / "tool-calls.jsonl"))
    found = answers(tools(), *[("POST", f"/tools/{c['tool']}", json.dumps(c["arguments"])) for c in calls])
    for call, (status, text) in zip(calls, found, strict=True):
        assert status == 200, call
        assert all(expected in text for expected in call["expect"]), call


@pytest.mark.parametrize(
    ("path", "body", "status", "code"),
    [
        ("/tools/order_status", "{", 400, "invalid_argument"),
        ("/tools/order_status", "", 400, "invalid_argument"),
        ("/tools/order_status", '{"order": "B-9999"}', 404, "not_found"),
        ("/tools/nothing", "{}", 404, "unknown_tool"),
    ],
)
def test_a_refused_call_has_a_status_and_a_code(path, body, status, code):
    found = answers(tools(), ("POST", path, body))[0]
    assert found[0] == status
    assert json.loads(found[1])["error"]["code"] == code


def test_the_listing_audit_ping_and_metrics_are_served():
    listing, used, audit, ping, metrics = answers(
        tools(),
        ("GET", "/tools", None),
        ("POST", "/tools/order_status", '{"order": "B-1001"}'),
        ("GET", "/audit?after=0", None),
        ("GET", "/ping", None),
        ("GET", "/metrics", None),
    )
    assert [tool["name"] for tool in json.loads(listing[1])["tools"]] == ["order_status", "create_ticket"]
    assert used[0] == ping[0] == 200
    assert json.loads(audit[1])["entries"][0]["caller"] == "anonymous"
    assert 'tools_requests_total{route="order_status",status="200"} 1' in metrics[1]


def test_the_embedder_serves_vectors_and_refuses_nonsense():
    good, bad, broken, ping, metrics = answers(
        embedder_app(HashingEmbedder()),
        ("POST", "/v1/embeddings", '{"input": "kettle"}'),
        ("POST", "/v1/embeddings", '{"input": 1}'),
        ("POST", "/v1/embeddings", "{"),
        ("GET", "/ping", None),
        ("GET", "/metrics", None),
    )
    assert (good[0], len(json.loads(good[1])["data"][0]["embedding"])) == (200, 384)
    assert (bad[0], broken[0], ping[0]) == (400, 400, 200)
    assert 'embedder_request_seconds_count{route="embeddings"} 3' in metrics[1]
