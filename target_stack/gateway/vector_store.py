"""Nearest documents from PostgreSQL with pgvector, and new ones into it, over a few persistent connections.

psycopg answers a cancelled query by asking the server to cancel it and waiting for that, up to seconds when the
server is frozen. So a query here runs in a task of its own and is never cancelled: whoever runs out of time cuts the
socket, and the task ends by itself. The server learns its limit too (statement_timeout), so that a query of which
nobody reads the answer ends there as well. A connection keeps its limit, and it is told anew only when it changes.
"""

from __future__ import annotations

import asyncio
import math
import os
import socket
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import psycopg

from target_stack.gateway.dependency import CallFailed

T = TypeVar("T")
Document = tuple[str, str]
_NEAREST = "SELECT id, body FROM documents ORDER BY embedding <=> %s::vector LIMIT %s"
_ADD = "INSERT INTO uploads (id, body, embedding) VALUES (%s, %s, %s::vector) ON CONFLICT (id) DO NOTHING"
_IS_IT = "SELECT body = %s FROM uploads WHERE id = %s"
_LIMIT = "SELECT set_config('statement_timeout', %s, false)"
_IDLE_MOST = 8
_SLACK_MS = 50  # the server gives up a little later than we do, so that our own limit is the one that is told


@dataclass(frozen=True)
class _Link:
    """A connection and the limit that its server holds queries to."""

    connection: psycopg.AsyncConnection
    limit_ms: int


class VectorStoreClient:
    """Search by vector. `connect_s` bounds the opening of a connection, `query_s` any query."""

    def __init__(self, address: tuple[str, int], connect_s: float, query_s: float = 1.0) -> None:
        self._address = address
        self._connect_s = connect_s
        self._query_s = query_s
        self._idle: list[_Link] = []
        self._running: set[asyncio.Task[Any]] = set()
        self._closed = False

    async def search(
        self, vector: Sequence[float], count: int, comment: str = "", within_s: float = math.inf
    ) -> list[Document]:
        """The nearest documents (id, body) by cosine distance, nearest first. Raises CallFailed.

        `within_s` is what the caller's deadline leaves, and the server is told. `comment` goes with the query into the
        server's activity list and its log of slow queries.
        """
        return await self._work(lambda link: _nearest(link, vector, count, comment), within_s)

    async def store(self, key: str, body: str, vector: Sequence[float], comment: str = "") -> bool:
        """Add a document under its key, once: committed when this returns. False where another text has the key.

        Raises CallFailed, and then it may have been added or not.
        """
        return await self._work(lambda link: _add(link, key, body, vector, comment), math.inf)

    async def _work(self, work: Callable[[psycopg.AsyncConnection], Awaitable[T]], within_s: float) -> T:
        limit_ms = _limit_ms(min(within_s, self._query_s))
        link = self._idle.pop() if self._idle else await self._connect(limit_ms)
        connection = link.connection
        told = None if link.limit_ms == limit_ms else limit_ms
        task = asyncio.create_task(_limited(connection, told, work))
        self._running.add(task)
        task.add_done_callback(self._forget)
        try:
            await asyncio.wait({task})
            result = task.result()
        except psycopg.Error as problem:
            # A statement that failed says nothing against its connection: a server with a bad disk takes no new one.
            await (self._drop_idle() if connection.closed else self._keep(_Link(connection, limit_ms)))
            raise CallFailed("query_failed") from problem
        except asyncio.CancelledError:
            _cut(connection)
            raise
        await self._keep(_Link(connection, limit_ms))
        return result

    async def _keep(self, link: _Link) -> None:
        if self._closed or len(self._idle) >= _IDLE_MOST:
            await link.connection.close()
        else:
            self._idle.append(link)

    async def close(self) -> None:
        """Close the idle connections; those in use close when their query ends."""
        self._closed = True
        await self._drop_idle()

    async def _connect(self, limit_ms: int) -> _Link:
        host, port = self._address
        try:
            async with asyncio.timeout(self._connect_s):
                connection = await psycopg.AsyncConnection.connect(
                    host=host,
                    port=port,
                    user="postgres",
                    dbname="postgres",
                    autocommit=True,
                    sslmode="disable",
                    options=f"-c statement_timeout={limit_ms}",
                )
                return _Link(connection, limit_ms)
        except (TimeoutError, psycopg.Error, OSError) as problem:
            raise CallFailed("connect_failed") from problem

    async def _drop_idle(self) -> None:
        # They led to the same server: when one broke, the others are as good as broken.
        while self._idle:
            await self._idle.pop().connection.close()

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # seen, also when the caller is gone


def _limit_ms(within_s: float) -> int:
    """Milliseconds for the server, in tenths of a second above one: a limit for each request would cost each a trip."""
    wanted = math.ceil(within_s * 1000)
    return (math.ceil(wanted / 100) * 100 if wanted > 100 else max(1, wanted)) + _SLACK_MS


async def _limited(
    connection: psycopg.AsyncConnection, limit_ms: int | None, work: Callable[[psycopg.AsyncConnection], Awaitable[T]]
) -> T:
    if limit_ms is not None:
        await connection.execute(_LIMIT, (str(limit_ms),))
    return await work(connection)


async def _nearest(
    connection: psycopg.AsyncConnection, vector: Sequence[float], count: int, comment: str
) -> list[Document]:
    # Each comment makes another statement, so preparing one would only fill the server's memory.
    cursor = await connection.execute((_NEAREST + comment).encode(), (_literal(vector), count), prepare=False)
    return [(str(name), str(body)) for name, body in await cursor.fetchall()]


async def _add(connection: psycopg.AsyncConnection, key: str, body: str, vector: Sequence[float], comment: str) -> bool:
    added = await connection.execute((_ADD + comment).encode(), (key, body, _literal(vector)), prepare=False)
    if added.rowcount:
        return True
    found = await (await connection.execute(_IS_IT, (body, key))).fetchone()
    return bool(found and found[0])


def _literal(vector: Sequence[float]) -> str:
    return "[" + ",".join(map(repr, vector)) + "]"


def _cut(connection: psycopg.AsyncConnection) -> None:
    """End the connection under its query without waiting for the server."""
    try:
        with socket.socket(fileno=os.dup(connection.fileno())) as twin:
            twin.shutdown(socket.SHUT_RDWR)
    except (OSError, psycopg.Error):
        return  # already closed, which is what was wanted
