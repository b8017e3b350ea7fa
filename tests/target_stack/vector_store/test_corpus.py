"""The documents' vectors come from the embedder once, and from the disk after that."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp.test_utils import TestServer

from target_stack.embedder.embedding import HashingEmbedder
from target_stack.embedder.main import make_app
from target_stack.vector_store.corpus import corpus_vectors

TEXTS = [f"document number {n}" for n in range(40)]


class Watched(HashingEmbedder):
    """Counts the texts that it was given."""

    embedded = 0

    def embed(self, texts: Any) -> Any:
        self.embedded += len(texts)
        return super().embed(texts)


def ask(embedder: Watched, folder: Path) -> list[list[float]]:
    async def main() -> list[list[float]]:
        async with TestServer(make_app(embedder)) as server, aiohttp.ClientSession() as session:
            url = str(server.make_url("")).rstrip("/")
            return await corpus_vectors(TEXTS, embedder=url, session=session, folder=folder)

    return asyncio.run(main())


def test_a_second_start_embeds_nothing_and_gets_the_same(tmp_path: Path) -> None:
    embedder = Watched()
    first, second = ask(embedder, tmp_path), ask(embedder, tmp_path)
    assert first == second == [list(one.vector) for one in HashingEmbedder().embed(TEXTS)]
    assert embedder.embedded == len(TEXTS)


def test_another_model_never_gets_the_vectors_of_the_first(tmp_path: Path) -> None:
    one, other = Watched(), Watched()
    other.fingerprint = "another"
    ask(one, tmp_path)
    ask(other, tmp_path)
    assert other.embedded == len(TEXTS)


def test_an_embedder_that_does_not_answer_is_an_error_and_nothing_is_kept(tmp_path: Path) -> None:
    class Broken(Watched):
        def embed(self, texts: Any) -> Any:
            raise RuntimeError

    with pytest.raises(aiohttp.ClientError):
        ask(Broken(), tmp_path)
    assert list(tmp_path.iterdir()) == []
