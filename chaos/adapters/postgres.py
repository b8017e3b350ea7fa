"""A few SQL statements to PostgreSQL as one transaction, on a connection of their own.

No client library: those ask a server to cancel what took too long and wait for its answer, and an observer of a frozen
server must not wait longer than it says. PostgreSQL's protocol 3.0, simple query; no password, as on loopback.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence

from chaos.adapters.network import split_address
from chaos.adapters.pgwire import STARTUP, messages, query
from chaos.ports import PostgresRefused, Rows


class PostgresCalls:
    """The `Postgres` port over TCP."""

    async def ask(self, address: str, statements: Sequence[str], *, timeout_s: float = 1.0) -> tuple[Rows, ...]:
        """As the port says. Statements of one query message are one transaction (Message Flow, Simple Query)."""
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection(*split_address(address))
            try:
                writer.write(STARTUP)
                await _results(reader)
                writer.write(query(";".join(statements)))
                return await _results(reader)
            except (EOFError, struct.error, ValueError) as problem:
                raise ConnectionError(f"{address} broke off or spoke another protocol") from problem
            finally:
                writer.transport.abort()  # the far side may be frozen: never wait for it


async def _results(reader: asyncio.StreamReader) -> tuple[Rows, ...]:
    """Rows of every statement up to `ready for query`. Raises PostgresRefused."""
    results: list[Rows] = []
    rows: list[tuple[str | None, ...]] = []
    async for kind, body in messages(reader):
        match kind:
            case b"D":
                rows.append(_row(body))
            case b"C":  # command complete
                results.append(tuple(rows))
                rows = []
            case b"E":
                raise _refusal(body)
            case b"R" if body[:4] != b"\0\0\0\0":
                raise PostgresRefused("28000", "the server asks for a password")
    return tuple(results)


def _row(body: bytes) -> tuple[str | None, ...]:
    (count,), place, values = struct.unpack("!H", body[:2]), 2, list[str | None]()
    for _ in range(count):
        (size,) = struct.unpack("!i", body[place : place + 4])
        place += 4
        values.append(None if size < 0 else body[place : place + size].decode("utf-8", "replace"))
        place += max(0, size)
    return tuple(values)


def _refusal(body: bytes) -> PostgresRefused:
    parts = [part.decode("utf-8", "replace") for part in body.split(b"\0") if part]
    fields = {part[0]: part[1:] for part in parts}
    return PostgresRefused(fields.get("C", ""), fields.get("M", "no message"))
