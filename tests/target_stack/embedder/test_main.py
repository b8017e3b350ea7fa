"""The embedder over real HTTP."""

from __future__ import annotations

import asyncio
import json

import pytest
from aiohttp.test_utils import TestClient, TestServer

from target_stack.embedder.embedding import HashingEmbedder
from target_stack.embedder.main import make_app

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


def test_the_embedder_serves_vectors_and_refuses_nonsense():
    good, bad, broken, ping, metrics = answers(
        make_app(HashingEmbedder()),
        ("POST", "/v1/embeddings", '{"input": "kettle"}'),
        ("POST", "/v1/embeddings", '{"input": 1}'),
        ("POST", "/v1/embeddings", "{"),
        ("GET", "/ping", None),
        ("GET", "/metrics", None),
    )
    assert (good[0], len(json.loads(good[1])["data"][0]["embedding"])) == (200, 384)
    assert (bad[0], broken[0], ping[0]) == (400, 400, 200)
    assert 'embedder_request_seconds_count{route="embeddings"} 3' in metrics[1]
