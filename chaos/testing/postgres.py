"""Databases on the addresses of an in-memory stack: SQLite plays PostgreSQL, for statements that both understand."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Sequence

from chaos.ports import PostgresRefused, Rows
from chaos.testing.stack import FakeProxy, FakeSupervisor, FakeTarget, ProcessTable

NO_SUCH_TABLE = "42P01"
DOCUMENTS = ("one", "two", "three")
"""Ids of what the table `documents` holds at first."""


class FakePostgres:
    """The `Postgres` port: every target whose wire is `postgres` has a database, which outlives its processes."""

    def __init__(self, supervisor: FakeSupervisor, processes: ProcessTable, proxy: FakeProxy) -> None:
        """Addresses are looked up at each call."""
        self._supervisor = supervisor
        self._processes = processes
        self._proxy = proxy
        self._databases: dict[str, sqlite3.Connection] = {}

    def database(self, name: str) -> sqlite3.Connection:
        """Of the target with this name."""
        if name not in self._databases:
            made = self._databases[name] = sqlite3.connect(":memory:", isolation_level=None)
            made.execute("CREATE TABLE documents (id text PRIMARY KEY)")
            made.executemany("INSERT INTO documents VALUES (?)", [(name,) for name in DOCUMENTS])
        return self._databases[name]

    async def ask(self, address: str, statements: Sequence[str], *, timeout_s: float = 1.0) -> tuple[Rows, ...]:
        """Run them in one transaction."""
        await asyncio.sleep(0)
        owner = self._owner(address)
        if owner is None or not self._supervisor.alive(owner):
            raise ConnectionRefusedError(f"nobody listens at {address}")
        first = self._processes.identify(owner.record.pids[0])
        if first is None or self._processes.state(first) == "T":
            await asyncio.sleep(timeout_s)
            raise TimeoutError(f"{address} did not answer")
        return _run(self.database(owner.record.name), statements)

    def _owner(self, address: str) -> FakeTarget | None:
        listener = self._proxy.at(address)
        upstream = listener.upstream if listener else address
        stores = (one for one in self._supervisor.targets.values() if one.record.wire == "postgres")
        return next((one for one in stores if one.record.address == upstream), None)


def _run(database: sqlite3.Connection, statements: Sequence[str]) -> tuple[Rows, ...]:
    database.execute("BEGIN")
    try:
        results = tuple(_rows(database.execute(statement)) for statement in statements)
    except sqlite3.Error as problem:
        database.execute("ROLLBACK")
        raise PostgresRefused(NO_SUCH_TABLE if "no such table" in str(problem) else "42601", str(problem)) from problem
    database.execute("COMMIT")
    return results


def _rows(cursor: sqlite3.Cursor) -> Rows:
    return tuple(tuple(None if value is None else str(value) for value in row) for row in cursor.fetchall())
