"""The documents' vectors, from the running embedder; kept on disk, since the same model gives the same ones again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp

from target_stack.cache_folder import keep, look_up

_TEXTS_AT_ONCE = 16
_TIMEOUT = aiohttp.ClientTimeout(5.0)


async def corpus_vectors(
    texts: Sequence[str], *, embedder: str, session: aiohttp.ClientSession, folder: Path
) -> list[list[float]]:
    """One vector a text. `embedder` is its base URL; `folder` is where they are kept.

    Raises aiohttp.ClientError, TimeoutError or OSError when the embedder does not answer.
    """
    model = await _call(session.get(f"{embedder}/ping", timeout=_TIMEOUT))
    key = hashlib.sha256(json.dumps([model["fingerprint"], list(texts)]).encode()).hexdigest()
    path = folder / f"vectors-{key[:32]}.json"
    kept = look_up(path)
    if kept is not None:
        vectors: list[list[float]] = json.loads(kept)
        return vectors
    vectors = []
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        body = {"input": list(texts[start : start + _TEXTS_AT_ONCE])}
        reply = await _call(session.post(f"{embedder}/v1/embeddings", json=body, timeout=_TIMEOUT))
        vectors += [one["embedding"] for one in reply["data"]]
    keep(path, json.dumps(vectors).encode())
    return vectors


async def _call(request: Any) -> Mapping[str, Any]:
    async with request as reply:
        reply.raise_for_status()
        answer: Mapping[str, Any] = await reply.json()
        return answer
