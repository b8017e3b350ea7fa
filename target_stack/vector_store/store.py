"""The tables: `documents` is made and filled once, then only asked; `uploads` takes what users add, apart from it.

Over a new connection each time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence

import psycopg

from target_stack.embedder.embedding import DIMENSIONS
from target_stack.fixtures import Document
from target_stack.web_service import split_address

Vectors = Callable[[Sequence[str]], Awaitable[Sequence[Sequence[float]]]]
"""Texts to vectors, by the embedder that questions will go to."""

_SCHEMA = f"""
CREATE EXTENSION IF NOT EXISTS vector;
CREATE TABLE documents (id text PRIMARY KEY, body text NOT NULL, embedding vector({DIMENSIONS}) NOT NULL);
CREATE TABLE uploads (
  id text PRIMARY KEY, body text NOT NULL, embedding vector({DIMENSIONS}) NOT NULL,
  at double precision NOT NULL DEFAULT extract(epoch FROM clock_timestamp())
);
CREATE INDEX documents_by_cosine ON documents USING hnsw (embedding vector_cosine_ops);
"""
_NEAREST_TO_ITSELF = """
SELECT d.id = one.id FROM documents d, (SELECT id, embedding FROM documents ORDER BY id LIMIT 1) one
ORDER BY d.embedding <=> one.embedding LIMIT 1
"""


def vector_literal(vector: Iterable[float]) -> str:
    """pgvector's text form: `[1,0.5]`."""
    return "[" + ",".join(f"{x:.8g}" for x in vector) + "]"


async def _connect(address: str) -> psycopg.AsyncConnection:
    host, port = split_address(address)
    return await psycopg.AsyncConnection.connect(
        host=host, port=port, user="postgres", dbname="postgres", connect_timeout=2, autocommit=True
    )


async def fill(address: str, documents: Sequence[Document], vectors: Vectors) -> None:
    """Make the table and load the documents, all or nothing; nothing when it is there already.

    Raises psycopg.Error, and what `vectors` raises.
    """
    async with await _connect(address) as connection:
        found = await connection.execute("SELECT to_regclass('documents')")
        if (await found.fetchone() or (None,))[0] is not None:
            return
        bodies = await vectors([document.body for document in documents])
        rows = [(d.id, d.body, vector_literal(vector)) for d, vector in zip(documents, bodies, strict=True)]
        async with connection.transaction(), connection.cursor() as cursor:
            await cursor.execute(_SCHEMA)
            await cursor.executemany("INSERT INTO documents VALUES (%s, %s, %s)", rows)


async def finds_itself(address: str) -> bool:
    """Whether a search for a stored vector finds its document first: the whole path but for the embedder. Raises
    psycopg.Error.
    """
    async with await _connect(address) as connection:
        found = await connection.execute(_NEAREST_TO_ITSELF)
        return bool((await found.fetchone() or (False,))[0])
