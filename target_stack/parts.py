"""The kinds of parts the supervisor can run: how each is started, how it shows that it serves, how it is told to end.

Component   one of our own services, forked from the nursery
Postgres    a real PostgreSQL with its cluster folder
Proxy       the fault proxy, any program that speaks Toxiproxy's HTTP contract
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import aiohttp
import psycopg

from target_stack.children import Children, clear, members
from target_stack.fixtures import read_documents
from target_stack.process import Account
from target_stack.vector_store.cluster import Cluster, drop_shared_memory
from target_stack.vector_store.store import Vectors, fill, finds_itself
from target_stack.vector_store.template import archive_of, pack, unpack

CHECK_TIMEOUT_S = 1.0
_FILL_TIMEOUT_S = 5.0
"""The first check embeds the corpus, which is a second of work on a busy machine."""
_SMALL = ("device",)
_HERE = Path(__file__).parents[1]
_GUARD = "{token_file}"


class PreparationFailed(Exception):
    """A part's one-time preparation went wrong; the message says which command and where its log is."""


class Part(Protocol):
    """One kind of part. `stop_signal` asks it to end in order."""

    stop_signal: int

    async def job(self, port: int) -> Mapping[str, Any]:
        """The order for the nursery. Raises PreparationFailed or OSError."""
        ...

    async def serves(self, address: str) -> bool:
        """Whether it does its real work now. Never raises for a part that is not there yet."""
        ...

    def processes(self, pid: int) -> tuple[int, ...]:
        """The processes that the inventory names, parent first."""
        ...

    def clean(self) -> None:
        """Remove what only a killed part leaves behind. Called when it is gone for good."""
        ...


async def http_status(
    session: aiohttp.ClientSession, method: str, url: str, body: Any = None, headers: Mapping[str, str] | None = None
) -> int:
    """Status of a short call; 0 when no answer came."""
    timeout = aiohttp.ClientTimeout(CHECK_TIMEOUT_S)
    try:
        async with session.request(method, url, json=body, headers=headers, timeout=timeout) as reply:
            await reply.read()
            return reply.status
    except (aiohttp.ClientError, OSError, TimeoutError):
        return 0


@dataclass
class Component:
    """One of our services. `config` gives its configuration for the address it shall listen on; `changed` stands before
    what it says.
    """

    name: str
    component: str
    config: Callable[[str], Mapping[str, Any]]
    session: aiohttp.ClientSession
    log: Path
    stop_signal: int = signal.SIGTERM
    changed: Mapping[str, Any] = field(default_factory=dict)

    async def job(self, port: int) -> Mapping[str, Any]:
        """Run the component in a fork; a small one in a program of its own, without everybody's modules."""
        config = {**self.config(f"127.0.0.1:{port}"), **self.changed}
        if self.component in _SMALL:
            argv = [sys.executable, "-m", "target_stack.serve", self.component, json.dumps(config)]
            return {"name": self.name, "argv": argv, "folder": str(_HERE), "log": str(self.log)}
        return {"name": self.name, "component": self.component, "config": config, "log": str(self.log)}

    async def serves(self, address: str) -> bool:
        """An engine must produce a token; the others answer a ping."""
        if self.component != "engine":
            return await http_status(self.session, "GET", f"http://{address}/ping") == 200
        model = {**self.config(address), **self.changed}["model"]
        body = {"model": model, "prompt": "Are you there?", "max_tokens": 1}
        return await http_status(self.session, "POST", f"http://{address}/v1/completions", body) == 200

    def processes(self, pid: int) -> tuple[int, ...]:
        """Its whole group: an engine's core is its second process."""
        return members(pid)

    def clean(self) -> None:
        """Nothing stays."""


@dataclass
class Postgres:
    """A real PostgreSQL. Its first start makes the cluster, from a copy in `caches` if there is one; its first
    readiness check loads the documents with the embedder's `vectors` for them.
    """

    name: str
    cluster: Cluster
    account: Account | None
    children: Children
    vectors: Vectors
    caches: Path
    log: Path
    stop_signal: int = signal.SIGINT  # "fast": SIGTERM would wait for every client to leave

    def _order(self, argv: list[str], suffix: str = "") -> dict[str, Any]:
        account = [self.account.uid, self.account.gid] if self.account else None
        return {"name": self.name + suffix, "argv": argv, "account": account, "log": str(self.log)}

    async def job(self, port: int) -> Mapping[str, Any]:
        """Make the cluster if it is not there, then serve it.

        Its server processes have sessions of their own. They leave when the postmaster dies, but one that hangs would
        stay, hold the lock, and keep every next postmaster from starting.
        """
        await clear(self.cluster.data)
        if not self.cluster.is_made():
            await self._make()
            self.cluster.mark_made()
        return self._order(self.cluster.serve(port))

    async def _make(self) -> None:
        command, data = self.cluster.initdb(), self.cluster.data
        archive = archive_of(command, self.caches)
        if await asyncio.to_thread(unpack, archive, data, self.account):
            return
        pid = await self.children.start(self._order(command, " initdb"))
        if await self.children.end_of(pid) != 0:
            raise PreparationFailed(f"initdb failed; see {self.log}")
        await asyncio.to_thread(pack, data, archive)

    async def serves(self, address: str) -> bool:
        """A real search finds what it must."""
        try:
            async with asyncio.timeout(_FILL_TIMEOUT_S):
                await fill(address, read_documents(), self.vectors)
                found = await finds_itself(address)
                if found:
                    self.cluster.leave_word()
                return found
        except (psycopg.Error, aiohttp.ClientError, OSError, TimeoutError):
            return False

    def processes(self, pid: int) -> tuple[int, ...]:
        """Only the postmaster: the others come and go with every client, and all are in its group."""
        return (pid,)

    def clean(self) -> None:
        """Drop the lock segment of a killed server."""
        drop_shared_memory(self.cluster.data)


@dataclass
class Proxy:
    """The fault proxy. `routes` gives every edge's name, address and upstream; `move` is told of a taken one.

    A command that speaks of `{token_file}` is one that demands the token in it.
    """

    name: str
    command: str
    token_file: Path
    routes: Callable[[], list[dict[str, Any]]]
    move: Callable[[str], None]
    session: aiohttp.ClientSession
    folder: Path
    log: Path
    stop_signal: int = signal.SIGTERM
    kind: str = "toxiproxy"
    """`brownout` when it has the harness's own toxics, as it then counts what they hit; known once it serves."""

    async def job(self, port: int) -> Mapping[str, Any]:
        """The given command; a bare program name is looked up on PATH."""
        command = self.command.replace("{port}", str(port)).replace(_GUARD, shlex.quote(str(self.token_file)))
        program, *rest = shlex.split(command)
        argv = [_which(program), *rest]
        return {"name": self.name, "argv": argv, "folder": str(self.folder), "log": str(self.log)}

    async def serves(self, address: str) -> bool:
        """It answers, and every edge is listening."""
        if await self._status("GET", f"http://{address}/version") != 200:
            return False
        if await self._status("POST", f"http://{address}/populate", self.routes()) in (200, 201):
            counts = await self._status("GET", f"http://{address}/brownout/hits") == 200
            self.kind = "brownout" if counts else "toxiproxy"
            return True
        for name in await self._missing(address):
            self.move(name)
        return False

    def record(self, admin: str) -> dict[str, str]:
        """What the harness is told."""
        return {"admin": admin, "kind": self.kind, **({"token_file": str(self.token_file)} if self._guarded else {})}

    @property
    def _guarded(self) -> bool:
        return _GUARD in self.command

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token_file.read_text('ascii').strip()}"} if self._guarded else {}

    async def _status(self, method: str, url: str, body: Any = None) -> int:
        return await http_status(self.session, method, url, body, self._headers())

    async def _missing(self, address: str) -> list[str]:
        timeout = aiohttp.ClientTimeout(CHECK_TIMEOUT_S)
        try:
            async with self.session.get(f"http://{address}/proxies", headers=self._headers(), timeout=timeout) as reply:
                up = {name for name, proxy in (await reply.json()).items() if proxy.get("enabled")}
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
            return []
        return [route["name"] for route in self.routes() if route["name"] not in up]

    def processes(self, pid: int) -> tuple[int, ...]:
        """The one that was started."""
        return (pid,)

    def clean(self) -> None:
        """Nothing stays."""


def _which(program: str) -> str:
    """Absolute path of a program. Raises PreparationFailed."""
    folders = [Path(folder) for folder in os.get_exec_path()] if "/" not in program else [Path()]
    for folder in folders:
        path = (folder / program).absolute()
        if path.is_file() and os.access(path, os.X_OK):
            return str(path)
    raise PreparationFailed(f"--proxy-command: there is no program {program!r}")
