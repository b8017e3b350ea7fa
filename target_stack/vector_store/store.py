"""The documents table: made and filled once, then only asked, over a new connection each time."""

from __future__ import annotations

from collections.abc import Iterable

import psycopg

from target_stack.embedder.embedding import DIMENSIONS, embed
from target_stack.fixtures import Document
from target_stack.web_service import split_address

_SCHEMA = f"""
CREATE EXTENSION IF NOT EXISTS vector;
CREATE TABLE documents (id text PRIMARY KEY, body text NOT NULL, embedding vector({DIMENSIONS}) NOT NULL);
CREATE INDEX documents_by_cosine ON documents USING hnsw (embedding vector_cosine_ops);
"""


def vector_literal(vector: Iterable[float]) -> str:
    """pgvector's text form: `[1,0.5]`."""
    return "[" + ",".join(f"{x:.8g}" for x in vector) + "]"


async def _connect(address: str) -> psycopg.AsyncConnection:
    host, port = split_address(address)
    return await psycopg.AsyncConnection.connect(
        host=host, port=port, user="postgres", dbname="postgres", connect_timeout=2, autocommit=True
    )


async def fill(address: str, documents: Iterable[Document]) -> None:
    """Make the table and load the documents, all or nothing; nothing when it is there already. Raises psycopg.Error."""
    async with await _connect(address) as connection, connection.transaction():
        found = await connection.execute("SELECT to_regclass('documents')")
        if (await found.fetchone() or (None,))[0] is not None:
            return
        await connection.execute(_SCHEMA)
        rows = [(d.id, d.body, vector_literal(embed(d.body))) for d in documents]
        async with connection.cursor() as cursor:
            await cursor.executemany("INSERT INTO documents VALUES (%s, %s, %s)", rows)


async def nearest(address: str, text: str, most: int = 3) -> list[str]:
    """Ids of the documents nearest to a text by cosine distance. Raises psycopg.Error."""
    async with await _connect(address) as connection:
        query = "SELECT id FROM documents ORDER BY embedding <=> %s::vector LIMIT %s"
        found = await connection.execute(query, (vector_literal(embed(text)), most))
        return [row[0] for row in await found.fetchall()]
