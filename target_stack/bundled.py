"""Builds the bundled stack from its topology and runs it: the one place where all pieces meet."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import shlex
import signal
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from target_stack.addresses import AddressBook
from target_stack.cache.part import Valkey
from target_stack.cache.server import ValkeyServer
from target_stack.cache.server import find_installation as find_valkey
from target_stack.cache_folder import cache_folder
from target_stack.children import Children
from target_stack.config import TargetSpec, Topology, component_config
from target_stack.control import open_control
from target_stack.edges import edges_of
from target_stack.parts import Component, Part, Postgres, Proxy
from target_stack.process import Account
from target_stack.supervisor import Seat, Supervisor
from target_stack.vector_store.accounts import reachable_copy
from target_stack.vector_store.cluster import Cluster, find_installation
from target_stack.vector_store.corpus import corpus_vectors
from target_stack.weaknesses import Weakness, plant
from target_stack.workspace import Workspace

PROXY = "proxy"


@dataclass(frozen=True)
class Order:
    """What to run: the topology, the mistakes in it, the proxy's command line if there shall be one.

    `proxy_at` is the admin address of a proxy that somebody else runs; it needs no command. `account` is the user for
    what must not run as root, or None when we are not root.
    """

    topology: Topology
    weaknesses: Sequence[Weakness]
    proxy_command: str | None
    account: Account | None
    proxy_at: str | None = None

    @property
    def disks(self) -> list[tuple[str, int, Account | None]]:
        """Which parts shall have one, of how many MiB, and whose it is: our own services run as we do."""
        sizes = [(each, each.disk_mib) for each in self.topology.targets if each.disk_mib]
        return [(each.name, mib, self.account if each.wire != "http" else None) for each, mib in sizes]

    @property
    def proxy(self) -> str | None:
        """The command line of the process in the proxy's seat."""
        if self.proxy_at is None:
            return self.proxy_command
        edges = [edge.name for edge in edges_of(self.topology)]
        return shlex.join([sys.executable, "-m", "target_stack.proxy_keeper", self.proxy_at, *edges])


@dataclass(frozen=True)
class Builder:
    """Makes the parts. A part asks for its configuration when it starts, because addresses may have moved by then."""

    order: Order
    workspace: Workspace
    book: AddressBook
    children: Children
    session: aiohttp.ClientSession
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32))

    def _config(self, target: TargetSpec, listen: str) -> Mapping[str, Any]:
        config = component_config(
            self.order.topology,
            target,
            listen=listen,
            address=self.book.for_clients(target.role),
            data_dir=str(self.workspace.data(target.name)),
            secret=self.secret,
            devices_dir=str(self.workspace.devices),
            direct={name: self.book.direct(name) for name in target.kv_paths.values()},
        )
        if target.component == "gateway":
            config["events_file"] = str(self.workspace.events(target.name))
        if target.component == "device":
            config["token_file"] = str(self.workspace.token_file)
        return plant(self.order.weaknesses, target.component, config)

    def target(self, target: TargetSpec) -> Part:
        """The part behind a target. Raises NoPostgres, NoValkey or OSError."""
        log, account = self.workspace.log(target.name), self.order.account
        match target.component:
            case "postgres":
                data = self.workspace.data(target.name, account)
                beside, settings = self.workspace.folder(target.name), plant(self.order.weaknesses, "postgres", {})
                cluster = Cluster(self._reachable(find_installation()), data, beside, settings)
                caches = cache_folder(os.environ)
                return Postgres(target.name, cluster, account, self.children, self._vectors, caches, log)
            case "valkey":
                server = ValkeyServer(self._reachable(find_valkey()), self.workspace.folder(target.name, account))
                return Valkey(target.name, server, account, log)
            case component:
                return Component(target.name, component, lambda listen: self._config(target, listen), self.session, log)

    def _reachable(self, binaries: Path) -> Path:
        """Programs where the account that will run them can reach them. Raises OSError."""
        account = self.order.account
        return reachable_copy(binaries, account, self.workspace.scratch.parent) if account else binaries

    async def _vectors(self, texts: Sequence[str]) -> list[list[float]]:
        """Straight from the embedder: no fault on its edge may spoil the corpus."""
        embedder = f"http://{self.book.direct(self.order.topology.of_role('embedder')[0].name)}"
        folder = cache_folder(os.environ)
        return await corpus_vectors(texts, embedder=embedder, session=self.session, folder=folder)

    def seats(self, edge_taken: Callable[[str], None]) -> dict[str, Seat]:
        """All parts in their places, the proxy first."""
        parts: dict[str, Part] = {}
        if self.order.proxy:
            log, here, token = self.workspace.log(PROXY), Path.cwd(), self.workspace.token_file
            parts[PROXY] = Proxy(PROXY, self.order.proxy, token, self.book.routes, edge_taken, self.session, here, log)
        parts |= {target.name: self.target(target) for target in self.order.topology.targets}
        return {name: Seat(name, part, self.workspace.log(name)) for name, part in parts.items()}


async def run_bundled(order: Order, workspace: Workspace, line: socket.socket) -> None:
    """Bring the stack up and keep it up until SIGTERM, SIGINT or `/shutdown`; `line` leads to the nursery.

    Raises CannotStart, NurseryGone, NoFreePort, NoPostgres, NoValkey, SocketPathTooLong or OSError.
    """
    names, edges = order.topology.endpoints(), edges_of(order.topology)
    book = AddressBook(names, edges, PROXY if order.proxy else None, random.Random())
    if order.proxy_at:
        book.place(PROXY, order.proxy_at)
    children = Children()

    def edge_taken(name: str) -> None:
        book.move_edge(name)
        supervisor.restart_callers()

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session:
        supervisor = Supervisor(
            topology=order.topology,
            weaknesses=[weakness.name for weakness in order.weaknesses],
            seats=Builder(order, workspace, book, children, session).seats(edge_taken),
            book=book,
            children=children,
            workspace=workspace,
        )
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, supervisor.ask_to_stop)
        (await children.connect(line, supervisor.on_exit)).add_done_callback(lambda _: supervisor.wake())
        await _serve(supervisor, workspace)


async def _serve(supervisor: Supervisor, workspace: Workspace) -> None:
    control = await open_control(supervisor, workspace.control_socket)
    try:
        await supervisor.run()
    finally:
        await supervisor.stop()
        await control.cleanup()
