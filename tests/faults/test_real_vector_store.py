"""Faults in the data and the settings of a real PostgreSQL: the undo is in the server, whenever we are cut off."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from chaos.adapters.host import real_host
from chaos.faults.fault import Fault
from chaos.faults.vector_store_empty import VectorStoreEmpty
from chaos.faults.vector_store_partial import VectorStorePartial
from chaos.faults.vector_store_read_only import VectorStoreReadOnly
from chaos.faults.vector_store_slow import VectorStoreSlow
from chaos.faults.vector_store_stale import VectorStoreStale
from chaos.faults.vector_store_unready import VectorStoreUnready
from chaos.inventory import Target
from chaos.testing.conformance import check_fault
from chaos.units import Duration
from tests.faults.servers import connect, postgres

pytestmark = pytest.mark.system

ROWS = [("one", "first: 1"), ("two", "second: 2")]


@pytest.fixture(scope="module")
def server() -> Iterator[int]:
    """The port of a server without a table."""
    with postgres() as found:
        yield found.port


@pytest.fixture
def port(server: int) -> Iterator[int]:
    """Of the server, with a table `documents`."""
    with connect(server) as connection:
        connection.execute("CREATE TABLE documents (id text PRIMARY KEY, body text)")
        connection.cursor().executemany("INSERT INTO documents VALUES (%s, %s)", ROWS)
        yield server
        connection.execute("DROP TABLE documents")


def _all(port: int) -> list[tuple[str, ...]]:
    """Everything that there is: the rows, the names of tables, indexes and views, and the settings in files."""
    with connect(port) as connection:
        names = "SELECT relname, relkind::text FROM pg_class WHERE relkind IN ('r', 'i', 'v') AND relnamespace = 2200"
        settings = "SELECT name, setting FROM pg_file_settings"
        return [
            row
            for query in ("SELECT id, body FROM documents", names, settings)
            for row in sorted(connection.execute(query).fetchall())
        ]


FAULTS: list[Fault] = [
    VectorStoreEmpty(),
    VectorStorePartial(),
    VectorStoreReadOnly(),
    VectorStoreSlow(delay=Duration(0.2)),
    VectorStoreStale(),
    VectorStoreUnready(),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.kind)
def test_it_keeps_its_contract_on_a_real_server_and_changes_nothing_for_good(port: int, fault: Fault) -> None:
    before = _all(port)

    async def main() -> None:
        store = Target("vector-store", "vector-store", None, (), f"127.0.0.1:{port}", wire="postgres")
        async with real_host() as host:
            await check_fault(fault, (store,), host)

    asyncio.run(main())
    assert _all(port) == before


def test_what_is_written_into_an_emptied_table_is_there_afterwards(port: int) -> None:
    store, empty = Target("s", "vector-store", None, (), f"127.0.0.1:{port}", wire="postgres"), VectorStoreEmpty()

    async def main() -> None:
        async with real_host() as host:
            undo = await empty.prepare((store,), host)
            await empty.inject((store,), undo, host)
            _insert(port, ("three", "third: 3"))
            await empty.revert(undo, host)

    asyncio.run(main())
    with connect(port) as connection:
        assert connection.execute("SELECT id FROM documents ORDER BY id").fetchall() == [("one",), ("three",), ("two",)]


def _insert(port: int, row: tuple[str, str]) -> None:
    with connect(port) as connection:
        connection.execute("INSERT INTO documents VALUES (%s, %s)", row)
