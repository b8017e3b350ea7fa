"""Parts of an in-memory stack: a process table, a supervisor and a fault proxy that answer as the real ones do.

They hold state and answer calls; nothing waits here except a restart, which is a timer of the running loop.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import signal as signals
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from chaos.inventory import Target
from chaos.ports import HttpReply, ProcessId, ProcessState

PARTS = ("core", "worker")
_KNOW_HTTP = ("http_", "mcp_", "sse_")
_DEADLY = (signals.SIGKILL, signals.SIGTERM, signals.SIGINT)


def reply(status: int, body: Any = None) -> HttpReply:
    """A JSON reply."""
    return HttpReply(status=status, body="" if body is None else json.dumps(body), headers={})


@dataclass
class _Process:
    id: ProcessId
    parent: int | None
    state: ProcessState = "S"
    words: tuple[str, ...] = ()


class ProcessTable:
    """The `Processes` port. Numbers are never reused; a child dies with its parent."""

    def __init__(self) -> None:
        """No process yet."""
        self._table: dict[int, _Process] = {}
        self._next = 4000
        self.endings: dict[int, int] = {}
        self.on_death: list[Callable[[int], None]] = []

    def spawn(self, parent: int | None = None, words: tuple[str, ...] = ()) -> ProcessId:
        """A new sleeping process with this command line."""
        self._next += 1
        made = _Process(ProcessId(self._next, self._next * 10), parent, words=words)
        self._table[self._next] = made
        return made.id

    def identify(self, pid: int) -> ProcessId | None:
        """The live process with this number."""
        found = self._table.get(pid)
        return found.id if found else None

    def state(self, process: ProcessId) -> ProcessState | None:
        """Its state letter, None when it is gone."""
        found = self._table.get(process.pid)
        return found.state if found and found.id == process else None

    def children(self, process: ProcessId) -> tuple[ProcessId, ...]:
        """Live direct children."""
        return tuple(child.id for child in self._table.values() if child.parent == process.pid)

    def parent(self, pid: int) -> int | None:
        """The number of its parent, when it has one here."""
        found = self._table.get(pid)
        return found.parent if found else None

    def numbers(self) -> tuple[int, ...]:
        """Of all that live."""
        return tuple(self._table)

    def with_argument(self, argument: str) -> tuple[ProcessId, ...]:
        """Those with this word on their command line."""
        return tuple(each.id for each in self._table.values() if argument in each.words)

    def signal(self, process: ProcessId, number: int) -> bool:
        """Stop, wake or kill; other signals are ignored."""
        found = self._table.get(process.pid)
        if not found or found.id != process:
            return False
        if number == signals.SIGSTOP:
            found.state = "T"
        elif number == signals.SIGCONT:
            found.state = "S"
        elif number in _DEADLY:
            # Who is asked leaves in good order.
            self.endings[process.pid] = -signals.SIGKILL if number == signals.SIGKILL else 0
            self._die(found)
        return True

    def _die(self, process: _Process) -> None:
        for child in self.children(process.id):
            self._die(self._table[child.pid])
        self._table.pop(process.id.pid, None)
        for tell in self.on_death:
            tell(process.id.pid)


@dataclass
class FakeTarget:
    """One target: its inventory record, how many processes it starts, who holds it dead, what lies on its further
    lives, and with which changed settings it runs.
    """

    record: Target
    processes: int
    holds: set[str] = field(default_factory=set)
    starting: bool = False
    burdens: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    starts: int = 0
    last_exit: int | None = None


class FakeSupervisor:
    """Starts what died unless a hold keeps it dead, and answers the control API. `absent` makes its socket vanish."""

    def __init__(self, socket: str, processes: ProcessTable, *, restart_s: float = 0.05) -> None:
        """A restart takes `restart_s` of virtual time."""
        self.socket = socket
        self.absent = False
        self.targets: dict[str, FakeTarget] = {}
        self._processes = processes
        self._restart_s = restart_s
        processes.on_death.append(self._on_death)

    def add(self, record: Target, processes: int) -> Target:
        """Start a target; gives its record with the numbers of its processes."""
        self.targets[record.name] = FakeTarget(record, processes)
        self._start(self.targets[record.name])
        return self.targets[record.name].record

    def answer(self, method: str, route: str, body: Any) -> HttpReply:
        """GET /status, POST /targets/{name}/hold, /burden and /release."""
        if (method, route) == ("GET", "/status"):
            return reply(200, self._status())
        _, folder, name, verb = (*route.split("/"), "", "", "")[:4]
        if method != "POST" or folder != "targets" or verb not in ("hold", "burden", "release"):
            return reply(404, {"error": f"no such route: {route}"})
        if name not in self.targets:
            return reply(404, {"error": f"no such target: {name}"})
        target = self.targets[name]
        if verb == "hold":
            target.holds.add(body["by"])
        elif verb == "burden":
            target.burdens[body["by"]] = dict(body)
            self._renew(target)
        else:
            target.holds.discard(body["by"])
            target.burdens.pop(body["by"], None)
            self._renew(target)
            self._start_later(target, at_once=True)
        return reply(200, {"holds": sorted(target.holds), "burdens": sorted(target.burdens)})

    def alive(self, target: FakeTarget) -> bool:
        """Whether its first process lives."""
        return bool(target.record.pids) and self._processes.identify(target.record.pids[0]) is not None

    def runs(self, target: FakeTarget) -> bool:
        """Whether its first process lives and is not frozen."""
        first = self._processes.identify(target.record.pids[0]) if target.record.pids else None
        return first is not None and self._processes.state(first) != "T"

    def at(self, address: str) -> FakeTarget | None:
        """The target whose own address this is, or that of one of its paths."""
        return next((one for one in self.targets.values() if address in _addresses(one.record)), None)

    def _status(self) -> Mapping[str, Any]:
        records = [
            {
                **target.record.to_json(),
                "state": self._state(target),
                "holds": sorted(target.holds),
                "burdens": sorted(target.burdens),
                "starts": target.starts,
                "last_exit": target.last_exit,
            }
            for target in self.targets.values()
        ]
        return {"version": 1, "targets": records}

    def _state(self, target: FakeTarget) -> str:
        if self.alive(target):
            return "ready"
        return "held" if target.holds else "starting"

    def _on_death(self, pid: int) -> None:
        for target in self.targets.values():
            if target.record.pids[:1] == (pid,):
                target.last_exit = self._processes.endings.get(pid)
                self._start_later(target)
            elif pid in target.record.parts.values():
                asyncio.get_running_loop().call_soon(self._end_without, target, target.record.pids[0])

    def _end_without(self, target: FakeTarget, leader: int) -> None:
        """A model server ends when a part of it has died."""
        if target.record.pids[0] == leader and (first := self._processes.identify(leader)):
            self._processes.signal(first, signals.SIGTERM)

    def _start_later(self, target: FakeTarget, *, at_once: bool = False) -> None:
        if target.holds or self.alive(target) or (target.starting and not at_once):
            return
        target.starting = True
        delay_s = max((float(each.get("start_delay_s", 0)) for each in target.burdens.values()), default=0.0)
        asyncio.get_running_loop().call_later(max(self._restart_s, delay_s), self._start, target)

    def _start(self, target: FakeTarget) -> None:
        target.starting = False
        if target.holds or self.alive(target):
            return
        first = self._processes.spawn()
        more = [self._processes.spawn(first.pid) for _ in range(target.processes - 1)]
        pids = (first.pid, *(process.pid for process in more))
        handles = {**target.record.handles, "process_group": first.pid}
        parts = dict(zip(PARTS, pids[1:], strict=False))
        target.record = dataclasses.replace(target.record, pids=pids, handles=handles, parts=parts)
        target.starts += 1
        target.settings = _settings(target)
        for mark, burden in target.burdens.items():
            if burden.get("life_s") is not None:
                asyncio.get_running_loop().call_later(burden["life_s"], self._strike, target, mark, first)

    def _strike(self, target: FakeTarget, mark: str, first: ProcessId) -> None:
        burden = target.burdens.get(mark)
        if burden is None or burden["deaths"] == 0:
            return
        if self._processes.signal(first, signals.SIGKILL) and burden["deaths"] is not None:
            target.burdens[mark] = {**burden, "deaths": burden["deaths"] - 1}

    def _renew(self, target: FakeTarget) -> None:
        """Other settings make it start anew."""
        if target.settings != _settings(target) and self.alive(target):
            leader = self._processes.identify(target.record.pids[0])
            if leader:
                self._processes.signal(leader, signals.SIGTERM)


def _addresses(target: Target) -> tuple[str, ...]:
    return (target.address, *(path["address"] for path in target.handles.get("kv_paths", {}).values()))


def _settings(target: FakeTarget) -> Mapping[str, Any]:
    return {key: value for each in target.burdens.values() for key, value in each.get("settings", {}).items()}


@dataclass
class FakeListener:
    """One listener of the fault proxy."""

    name: str
    listen: str
    upstream: str
    enabled: bool = True
    toxics: list[dict[str, Any]] = field(default_factory=list)

    @property
    def delay_s(self) -> float:
        """What its latency toxics add to a round trip."""
        delays_ms = [float(t["attributes"]["latency"]) for t in self.toxics if t["type"] == "latency"]
        return sum(delays_ms) / 1000

    def of(self, kind: str) -> list[Mapping[str, Any]]:
        """The attributes of its toxics of a kind."""
        return [toxic["attributes"] for toxic in self.toxics if toxic["type"] == kind]

    def added_s(self, size: int) -> float:
        """What its toxics add to a talk of so many bytes."""
        narrow_s = sum(size / 1000 / float(each["rate"]) for each in self.of("bandwidth"))
        sliced_s = sum(size * float(each["delay"]) / 1e6 / float(each["average_size"]) for each in self.of("slicer"))
        return self.delay_s + narrow_s + sliced_s

    def to_json(self) -> dict[str, Any]:
        """As the contract shows a proxy."""
        return dataclasses.asdict(self)


class FakeProxy:
    """Answers those Toxiproxy calls that faults make. `absent` makes its admin port refuse."""

    def __init__(self, admin: str) -> None:
        """No listener yet."""
        self.admin = admin
        self.absent = False
        self.listeners: dict[str, FakeListener] = {}
        self.hits: Counter[tuple[str, str]] = Counter()

    def add(self, name: str, listen: str, upstream: str) -> None:
        """Listen for a target."""
        self.listeners[name] = FakeListener(name, listen, upstream)

    def at(self, address: str) -> FakeListener | None:
        """The listener of this address."""
        return next((one for one in self.listeners.values() if one.listen == address), None)

    def touch(self, listener: FakeListener) -> None:
        """Bytes have passed: each toxic that knows nothing of requests counts a connection."""
        self.hits.update((listener.name, t["name"]) for t in listener.toxics if not t["type"].startswith(_KNOW_HTTP))

    def answer(self, method: str, route: str, body: Any) -> HttpReply:
        """Routes under /proxies/{name}, status codes as in the contract; and the count of what toxics have hit."""
        if route == "/brownout/hits":
            return reply(200, {name: self._hits(listener) for name, listener in self.listeners.items()})
        _, folder, name, toxics, toxic = (*route.split("/"), "", "", "", "")[:5]
        listener = self.listeners.get(unquote(name))
        if folder != "proxies" or listener is None:
            return reply(404, {"error": "proxy not found", "status": 404})
        if toxics:
            return self._toxic(method, listener, toxic, body)
        if method in ("POST", "PATCH"):
            listener.enabled = body.get("enabled", listener.enabled)
        return reply(200, listener.to_json())

    def _hits(self, listener: FakeListener) -> dict[str, Any]:
        counted = {name: {"requests": self.hits[listener.name, name]} for name in (t["name"] for t in listener.toxics)}
        return {"toxics": counted}

    def _toxic(self, method: str, listener: FakeListener, name: str, body: Any) -> HttpReply:
        if method == "POST":
            if any(one["name"] == body["name"] for one in listener.toxics):
                return reply(409, {"error": "toxic already exists", "status": 409})
            listener.toxics.append(dict(body))
            return reply(200, body)
        found = next((one for one in listener.toxics if one["name"] == name), None)
        if found is None:
            return reply(404, {"error": "toxic not found", "status": 404})
        if method == "DELETE":
            listener.toxics.remove(found)
            return reply(204)
        return reply(200, found)
