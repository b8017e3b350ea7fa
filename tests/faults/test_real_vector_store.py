"""An emptied table in a real PostgreSQL: the undo is in the database, whenever we are cut off."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from chaos.adapters.host import real_host
from chaos.faults.vector_store_empty import VectorStoreEmpty
from chaos.inventory import Target
from chaos.testing.conformance import check_fault
from target_stack.vector_store.accounts import reachable_copy, unprivileged
from target_stack.vector_store.cluster import Cluster, drop_shared_memory, find_installation

pytestmark = pytest.mark.system

ROWS = [("one", "first"), ("two", "second")]


@pytest.fixture
def port() -> Iterator[int]:
    """Of a server with a table `documents`."""
    account, temporary = unprivileged(os.geteuid()), Path(tempfile.gettempdir())
    data = Path(tempfile.mkdtemp(prefix="brownout-"))
    user = {"user": account.uid, "group": account.gid, "extra_groups": []} if account else {}
    if account:
        os.chown(data, account.uid, account.gid)
    binaries = reachable_copy(find_installation(), account, temporary) if account else find_installation()
    cluster = Cluster(binaries, data)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        number = probe.getsockname()[1]
    quiet = {"cwd": "/", "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **user}
    subprocess.run(cluster.initdb(), check=True, **quiet)
    process = subprocess.Popen(cluster.serve(number), **quiet)
    try:
        _fill(number)
        yield number
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(10)
        drop_shared_memory(data)
        shutil.rmtree(data)


def _connect(port: int) -> psycopg.Connection:
    return psycopg.connect(host="127.0.0.1", port=port, user="postgres", dbname="postgres", autocommit=True)


def _fill(port: int) -> None:
    end = time.monotonic() + 20
    while True:
        try:
            with _connect(port) as connection:
                connection.execute("CREATE TABLE documents (id text PRIMARY KEY, body text)")
                connection.cursor().executemany("INSERT INTO documents VALUES (%s, %s)", ROWS)
                return
        except psycopg.OperationalError:
            assert time.monotonic() < end
            time.sleep(0.02)


def test_it_keeps_its_contract_on_a_real_server_and_loses_nothing(port: int) -> None:
    async def main() -> None:
        store = Target("vector-store", "vector-store", None, (), f"127.0.0.1:{port}", wire="postgres")
        async with real_host() as host:
            await check_fault(VectorStoreEmpty(), (store,), host)

    asyncio.run(main())
    with _connect(port) as connection:
        assert connection.execute("SELECT id, body FROM documents ORDER BY id").fetchall() == ROWS
        names = connection.execute("SELECT relname FROM pg_class WHERE relkind IN ('r', 'i') AND relnamespace = 2200")
        assert sorted(name for (name,) in names) == ["documents", "documents_pkey"]
