"""Real servers for tests of faults: PostgreSQL, Valkey and the tools, each in a folder of its own on a free port."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import redis

from chaos.inventory import Target
from target_stack.cache.server import ValkeyServer
from target_stack.cache.server import find_installation as find_valkey
from target_stack.vector_store.accounts import reachable_copy, unprivileged
from target_stack.vector_store.cluster import Cluster, drop_shared_memory, find_installation
from tests.loopback import free_port

PATIENCE_S = 60.0


@dataclass(frozen=True)
class Server:
    """One that serves."""

    port: int
    pid: int
    folder: Path

    def target(self, name: str, role: str, wire: str) -> Target:
        """As an inventory would have it."""
        address = f"127.0.0.1:{self.port}"
        storage = {"folder": str(self.folder), **({"check": f"http://{address}/storage"} if wire == "http" else {})}
        return Target(name, role, None, (self.pid,), address, wire=wire, handles={"storage": storage})


def until(serves: Callable[[], Any], *trouble: type[Exception]) -> None:
    """Wait for it."""
    end = time.monotonic() + PATIENCE_S
    while True:
        with contextlib.suppress(*trouble):
            serves()
            return
        assert time.monotonic() < end
        time.sleep(0.02)


@contextlib.contextmanager
def postgres() -> Iterator[Server]:
    """A fresh cluster; as root under an account of its own."""
    account, temporary = unprivileged(os.geteuid()), Path(tempfile.gettempdir())
    data = Path(tempfile.mkdtemp(prefix="brownout-"))
    user = {"user": account.uid, "group": account.gid, "extra_groups": []} if account else {}
    if account:
        os.chown(data, account.uid, account.gid)
    binaries = reachable_copy(find_installation(), account, temporary) if account else find_installation()
    cluster, number = Cluster(binaries, data), free_port()
    quiet = {"cwd": "/", "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, **user}
    subprocess.run(cluster.initdb(), check=True, **quiet)
    process = subprocess.Popen(cluster.serve(number), **quiet)
    try:
        until(lambda: connect(number).close(), psycopg.OperationalError)
        yield Server(number, process.pid, data)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(10)
        drop_shared_memory(data)
        shutil.rmtree(data)


def connect(port: int) -> psycopg.Connection:
    """As the superuser."""
    return psycopg.connect(host="127.0.0.1", port=port, user="postgres", dbname="postgres", autocommit=True)


@contextlib.contextmanager
def valkey(folder: Path) -> Iterator[Server]:
    """Over this folder."""
    number = free_port()
    command = ValkeyServer(find_valkey(), folder).serve(number)
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process, redis.Redis(port=number) as client:
        try:
            until(client.ping, redis.ConnectionError, redis.BusyLoadingError)
            yield Server(number, process.pid, folder)
        finally:
            process.kill()


@contextlib.contextmanager
def tools(folder: Path) -> Iterator[Server]:
    """The tool service of the stack."""
    number = free_port()
    config = json.dumps({"name": "tools", "listen": f"127.0.0.1:{number}", "data_dir": str(folder)})
    command = [sys.executable, "-m", "target_stack.serve", "tools", config]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            until(lambda: urllib.request.urlopen(f"http://127.0.0.1:{number}/ping").close(), OSError)
            yield Server(number, process.pid, folder)
        finally:
            process.terminate()
