"""A whole machine in memory: a small stack to harm, in virtual time, with a log of all that was done to it.

    world = InMemoryHost()
    engine = world.add_target("engine-a", "engine", node="gpu-node-1", processes=2)
    await ProcessStall().inject((engine,), undo, world.host)
    assert world.changes == ("signal 4002 19",)

Use it inside `chaos.testing.clock.run_virtual`.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from chaos.inventory import Edge, Target
from chaos.ports import ConnectResult, Exchanged, Host, HttpReply, Segments, Wire
from chaos.testing.cgroups import FakeGroups
from chaos.testing.clock import VirtualClock
from chaos.testing.crowd import FakeCrowd
from chaos.testing.devices import FakeDevices
from chaos.testing.files import InMemoryFiles
from chaos.testing.kernel import FakeKernel
from chaos.testing.links import FakeLinks
from chaos.testing.postgres import FakePostgres
from chaos.testing.programs import FakePrograms
from chaos.testing.recording import Recording
from chaos.testing.redis import FakeRedis
from chaos.testing.releases import FakeReleases
from chaos.testing.serving import FakeServing
from chaos.testing.stack import FakeListener, FakeProxy, FakeSupervisor, ProcessTable
from chaos.testing.tampered import Tampered

ROUND_TRIP_S = 0.0005
_FATAL = ("timeout", "reset_peer")


class InMemoryNetwork:
    """The `Network` port: an address is a target's own or a listener of the fault proxy; all others refuse."""

    def __init__(self, supervisor: FakeSupervisor, proxy: FakeProxy, kernel: FakeKernel, links: FakeLinks) -> None:
        """Addresses are looked up at each call."""
        self._supervisor = supervisor
        self._proxy = proxy
        self._kernel = kernel
        self._links = links

    async def connect(self, address: str, timeout_s: float) -> ConnectResult:
        """A frozen process still accepts: the kernel does it."""
        del timeout_s
        await asyncio.sleep(0)
        listener = self._proxy.at(address)
        if listener:
            return "accepted" if listener.enabled and not self._proxy.absent else "refused"
        owner = self._supervisor.at(address)
        return "accepted" if owner and self._supervisor.alive(owner) else "refused"

    async def round_trip(self, address: str, wire: Wire, timeout_s: float) -> float | None:
        """Half a millisecond and what the latency toxics add; a first process that is frozen, or can open no file more,
        never answers.
        """
        listener = self._proxy.at(address)
        delay_s = listener.delay_s if listener else 0.0
        if await self.connect(address, timeout_s) != "accepted":
            return None
        owner = self._supervisor.at(listener.upstream if listener else address)
        needs_s = ROUND_TRIP_S + delay_s
        answers = owner is not None and self._supervisor.runs(owner) and owner.record.wire == wire
        answers = answers and owner is not None and not self._kernel.full(owner.record.pids[0])
        if listener:
            self._proxy.touch(listener)
            answers = answers and not any(listener.of(kind) for kind in _FATAL)
        await asyncio.sleep(min(needs_s, timeout_s) if answers else timeout_s)
        return needs_s if answers and needs_s <= timeout_s else None

    async def exchange(self, address: str, wire: Wire, size: int, timeout_s: float) -> Exchanged:
        """A talk through all the toxics of the edge."""
        if await self.connect(address, timeout_s) != "accepted":
            return Exchanged("none", 0, 0.0)
        listener = self._proxy.at(address)
        owner = self._supervisor.at(listener.upstream if listener else address)
        needs_s = ROUND_TRIP_S + (listener.added_s(size) if listener else 0.0)
        ended = _ended(listener, size) if listener else None
        if listener:
            self._proxy.touch(listener)
        if owner is None or not self._supervisor.runs(owner) or owner.record.wire != wire or ended == "silent":
            needs_s, ended = timeout_s, "silent"
        await asyncio.sleep(min(needs_s, timeout_s))
        if ended:
            return Exchanged(ended, 0, needs_s)
        return Exchanged("whole", size, needs_s) if needs_s <= timeout_s else Exchanged("silent", 0, timeout_s)

    async def segments(self, address: str, wire: Wire, size: int, timeout_s: float) -> Segments:
        """A talk over the links before a target's own port."""
        if await self.connect(address, timeout_s) != "accepted":
            return Segments(Exchanged("none", 0, 0.0))
        plain = await self.exchange(address, wire, size, timeout_s) if size else Exchanged("none", 0, 0.0)
        seen = self._links.talk(address, plain, size, ROUND_TRIP_S)
        await asyncio.sleep(max(0.0, seen.talk.took_s - plain.took_s))
        return seen


def _ended(listener: FakeListener, size: int) -> Literal["silent", "broken"] | None:
    """How its toxics end a talk of so many bytes, if they do."""
    if listener.of("timeout"):
        return "silent"
    limited = any(each["bytes"] < size for each in listener.of("limit_data"))
    return "broken" if limited or listener.of("reset_peer") else None


KEY_FILE = "/run/stack/admin.token"
_STRANGER = HttpReply(401, "missing or wrong token", {})


class InMemoryHttp:
    """The `Http` port. `pages` are replies by URL; `trouble` are replies by the beginning of a URL, and come first."""

    def __init__(
        self, supervisor: FakeSupervisor, proxy: FakeProxy, devices: FakeDevices, serving: FakeServing
    ) -> None:
        """Serves the supervisor's socket, the admin ports of proxy and devices, `pages`, and what the targets serve."""
        self.pages: dict[str, HttpReply] = {}
        self.trouble: dict[str, HttpReply] = {}
        self.releases: list[FakeReleases] = []
        self._supervisor = supervisor
        self._proxy = proxy
        self._devices = devices
        self._serving = serving

    async def call(
        self,
        method: str,
        url: str,
        json: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        timeout_s: float = 2.0,
        token_file: str | None = None,
    ) -> HttpReply:
        """One call. Only what targets serve takes time. The admin ports know those who name the right token file."""
        await asyncio.sleep(0)
        for prefix, answer in self.trouble.items():
            if url.startswith(prefix):
                return answer
        if url in self.pages:
            return self.pages[url]
        for gateway in self.releases:
            if said := gateway.answer(method, url, json):
                return said
        socket, admin = f"unix://{self._supervisor.socket}:", f"http://{self._proxy.admin}"
        if url.startswith(socket) and not self._supervisor.absent:
            return self._supervisor.answer(method, url.removeprefix(socket), json)
        known = token_file == KEY_FILE
        if url.startswith(admin) and not self._proxy.absent:
            return self._proxy.answer(method, url.removeprefix(admin), json) if known else _STRANGER
        gpus = f"http://{self._devices.admin}"
        if url.startswith(gpus) and not self._devices.absent:
            controls = url.startswith(f"{gpus}/devices/")
            return self._devices.answer(method, url.removeprefix(gpus), json) if known or not controls else _STRANGER
        served = await self._serving.answer(method, url, json, headers or {}, timeout_s)
        if served:
            return served
        word = "absent: no such socket" if url.startswith("unix:") else "refused: nobody listens"
        return HttpReply(status=0, body="", headers={}, error=word)


class InMemoryHost:
    """The machine. `host` is what faults and probes get; the other attributes are for the test."""

    def __init__(self, *, socket: str = "/run/stack/control.sock", admin: str = "127.0.0.1:8474") -> None:
        """An empty stack."""
        self.clock = VirtualClock()
        self.processes = ProcessTable()
        self.supervisor = FakeSupervisor(socket, self.processes)
        self.proxy = FakeProxy(admin)
        self.files = InMemoryFiles()
        self.programs = FakePrograms(self.processes, self.files)
        tampered = Tampered(self.programs, self.clock)
        self.redis = FakeRedis(self.supervisor, self.proxy, tampered)
        self.postgres = FakePostgres(self.supervisor, self.proxy, tampered)
        self.devices = FakeDevices("127.0.0.1:8479")
        crowd = FakeCrowd(self.programs, self.clock)
        serving = FakeServing(self.supervisor, self.processes, self.proxy, self.devices, tampered, crowd=crowd)
        self.http = InMemoryHttp(self.supervisor, self.proxy, self.devices, serving)
        self.kernel = FakeKernel(self.processes, self.programs, self.clock)
        self.groups = FakeGroups(self.processes)
        self.files.show(self.kernel, self.groups)
        self.links = FakeLinks(self.programs)
        network = InMemoryNetwork(self.supervisor, self.proxy, self.kernel, self.links)
        self._recording = Recording(
            Host(
                self.clock,
                self.processes,
                self.programs,
                network,
                self.http,
                self.redis,
                self.postgres,
                self.files,
            )
        )
        self.host = self._recording.host

    def add_target(
        self, name: str, role: str = "engine", *, node: str | None = None, wire: str = "http", processes: int = 1
    ) -> Target:
        """Start a target with a proxy listener before it and a GPU below it."""
        number, data = len(self.supervisor.targets) + 1, f"/data/{name}"
        address, via = f"127.0.0.1:{41000 + number}", f"127.0.0.1:{42000 + number}"
        handles = {
            "supervisor": self.supervisor.socket,
            "proxy": {"admin": self.proxy.admin, "name": name, "token_file": KEY_FILE},
            "data": {"folder": data, "limit_bytes": 16 << 20},
            "device": {"admin": self.devices.admin, "id": self.devices.add(name), "token_file": KEY_FILE},
            "storage": {"folder": f"/var/lib/{name}", "check": f"http://{address}/storage"},
        }
        self.proxy.add(name, listen=via, upstream=address)
        if role == "prefill":
            handles["kv_paths"] = self._kv_paths(name, number)
        self.files.full[Path(data)] = lambda: any(data in each["folders"] for each in self.programs.at_work("disk"))
        return self.supervisor.add(Target(name, role, node, (), address, via, wire=wire, handles=handles), processes)

    def add_caller(self, name: str, caller: str) -> Target:
        """Give the callers of another role a listener of their own before a target; all before them are gateways."""
        known = self.supervisor.targets[name]
        record, listener = known.record, f"{caller}->{name}"
        first = Edge("gateway", name, record.role, record.via or "", name, record.address, record.wire)
        edges = record.edges or (first,)
        number = 1000 * len(edges) + int(record.address.rpartition(":")[2])
        via = f"127.0.0.1:{number + 2000}"
        self.proxy.add(listener, listen=via, upstream=record.address)
        edge = Edge(caller, name, record.role, via, listener, record.address, record.wire)
        known.record = dataclasses.replace(record, edges=(*edges, edge))
        return known.record

    def _kv_paths(self, name: str, number: int) -> dict[str, Any]:
        """Two more listeners of the target, each behind an edge of its own."""
        paths = {}
        for place, path in enumerate(("side_channel", "transfer")):
            edge = f"{name}.{path}"
            address, via = f"127.0.0.1:{43000 + 10 * number + place}", f"127.0.0.1:{44000 + 10 * number + place}"
            self.proxy.add(edge, listen=via, upstream=address)
            proxy = {"admin": self.proxy.admin, "name": edge, "token_file": KEY_FILE}
            paths[path] = {"address": address, "via": via, "proxy": proxy}
        return paths

    def add_gateway(self, name: str = "gateway") -> Target:
        """Start a gateway that has releases."""
        made, admin = self.add_target(name, "gateway"), f"/run/stack/{name}.sock"
        known = self.supervisor.targets[name]
        known.record = dataclasses.replace(made, handles={**made.handles, "admin": admin})
        self.http.releases.append(FakeReleases(admin, made.address))
        return known.record

    def target(self, name: str) -> Target:
        """Its record as it is now."""
        return self.supervisor.targets[name].record

    @property
    def log(self) -> tuple[str, ...]:
        """Every call so far, in words."""
        return tuple(deed.what for deed in self._recording.log)

    @property
    def changes(self) -> tuple[str, ...]:
        """Those that altered something."""
        return self._recording.changes
