"""Everything that an outsider can see to be broken on a stack that should be whole.

One check a layer; a fault that leaves something new behind brings a check, and a line in `OF_TARGETS` or `OF_MACHINE`.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import resource
import shutil
import socket
import subprocess
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import redis

from chaos.saboteurs.ptrace import tracer_of
from chaos.saboteurs.vdso import our_page, place_in

Target = Mapping[str, Any]


@dataclass
class Sight:
    """One look at everything. What several checks need is asked for once: `proxies` and `supervisors`."""

    leases: list[str]
    targets: list[Target]
    temporary: Path
    _asked: dict[str, Any] = field(default_factory=dict)

    def proxies(self, handle: Mapping[str, str]) -> Mapping[str, Any]:
        """What a fault proxy says of its edges."""
        return self._once(f"http://{handle['admin']}/proxies", handle.get("token_file"))

    def supervised(self, target: Target) -> Mapping[str, Any]:
        """What its supervisor says of a target at this moment."""
        path = target["handles"]["supervisor"]
        if path not in self._asked:
            self._asked[path] = ask_unix(path, "/status")
        records = {record["name"]: record for record in self._asked[path].get("targets", ())}
        found: Mapping[str, Any] = records.get(target["name"], {})
        return found

    def _once(self, url: str, token_file: str | None) -> Mapping[str, Any]:
        if url not in self._asked:
            self._asked[url] = ask(url, token_file)
        found: Mapping[str, Any] = self._asked[url]
        return found


def harm_in(sight: Sight) -> list[str]:
    """All that is broken, each in one line."""
    looks = [(target, look) for target in sight.targets for look in OF_TARGETS]
    of_targets = ((target, trouble) for target, look in looks for trouble in look(target, sight))
    of_machine = (trouble for look in OF_MACHINE for trouble in look(sight))
    return [*(f"{target['name']}: {trouble}" for target, trouble in of_targets), *of_machine]


def leases(sight: Sight) -> Iterator[str]:
    """Whoever reverts takes the lease away."""
    yield from (f"lease {name}" for name in sight.leases)


def files_and_saboteurs(sight: Sight) -> Iterator[str]:
    """Markers and warrants, and processes that act on one."""
    if sight.temporary.is_dir():
        yield from (f"file {path.name}" for path in sorted(sight.temporary.glob(f"*{_MARK}*")))
        yield from (f"saboteur {line}" for line in ours(f"{sight.temporary}{os.sep}{_MARK}"))


def packet_rules(sight: Sight) -> Iterator[str]:
    """Rules of ours on a port of the stack, in this network."""
    ports = {target["address"].rpartition(":")[2] for target in sight.targets}
    for tool in ("iptables", "ip6tables"):
        if os.geteuid() == 0 and shutil.which(tool):
            listed = subprocess.run([tool, "-w", "-t", "mangle", "-S"], check=False, capture_output=True, text=True)
            lines = [line for line in listed.stdout.splitlines() if _MARK in line]
            yield from (f"rule {line}" for line in lines if ports & set(line.split()))


def processes(target: Target, _: Sight) -> Iterator[str]:
    """Each lives and runs."""
    for pid in target["pids"]:
        state = process_state(pid)
        if state in {None, "T", "Z"}:
            yield f"process {pid} is in state {state}"
    if not target["pids"]:
        yield "no process"


def tampering(target: Target, _: Sight) -> Iterator[str]:
    """A tracer, and a clock that is not the machine's."""
    for pid in target["pids"]:
        if tracer := tracer_of(pid):
            yield f"process {pid} is traced by {tracer}"
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if _has_changed_clock(pid):
                yield f"process {pid} has a changed clock"


def _has_changed_clock(pid: int) -> bool:
    start = place_in(pid) or 0
    with Path(f"/proc/{pid}/mem").open("rb", 0) as memory:
        return any(os.pread(memory.fileno(), len(word), start + at) != word for at, word in our_page().right().items())


def limits(target: Target, _: Sight) -> Iterator[str]:
    """Groups of ours, and a limit of open files that no server could start with."""
    for pid in target["pids"]:
        with contextlib.suppress(OSError):
            if f"/{_MARK}" in Path(f"/proc/{pid}/cgroup").read_text():
                yield f"process {pid} is in a group of ours"
            if resource.prlimit(pid, resource.RLIMIT_NOFILE)[0] < _FILES_OF_ANY_SERVER:
                yield f"process {pid} may open no file"


def room(target: Target, _: Sight) -> Iterator[str]:
    """On the disk of its data, where it has one of its own."""
    if (data := target["handles"].get("data")) and os.statvfs(data["folder"]).f_bavail == 0:
        yield f"no room in {data['folder']}"


def listeners(target: Target, _: Sight) -> Iterator[str]:
    """Its own address and the one through the proxy."""
    yield from (f"{name} {target[name]} refuses" for name in ("address", "via") if not accepts(target[name]))


def edges(target: Target, sight: Sight) -> Iterator[str]:
    """Of all its callers: on, and without a toxic."""
    listeners_there = sight.proxies(target["handles"]["proxy"])
    for edge in target["edges"]:
        found = listeners_there.get(edge["proxy"])
        if found is None or not found["enabled"] or found["toxics"]:
            yield f"the edge of {edge['from']} is {found}"


def marks(target: Target, sight: Sight) -> Iterator[str]:
    """Holds and burdens at the supervisor."""
    record = sight.supervised(target)
    if not record:
        yield "its supervisor does not know it"
    yield from (f"{kind} {mark}" for kind in ("holds", "burdens") for mark in record.get(kind, ()))


def gpu(target: Target, sight: Sight) -> Iterator[str]:
    """Conditions of the GPU under it."""
    del sight
    if device := target["handles"].get("device"):
        found = ask(f"http://{device['admin']}/devices/{device['id']}", device.get("token_file"))
        yield from (f"{device['id']}: condition {mark}" for mark in found.get("conditions", ["unknown: no answer"]))


def release(target: Target, sight: Sight) -> Iterator[str]:
    """A canary, or a release of ours for all users."""
    del sight
    if admin := target["handles"].get("admin"):
        report = ask_unix(admin, "/admin/releases")
        if not report:
            yield "it does not say which release is in force"
        elif report["canary"] or report["stable"]["name"].startswith(_MARK):
            yield f"releases {report['stable']['name']} and {report['canary']}"


def database(target: Target, _: Sight) -> Iterator[str]:
    """Hidden tables, views that stand in for them, and settings that somebody has written down."""
    if target["wire"] != "postgres":
        return
    host, _, port = target["address"].rpartition(":")
    try:
        with psycopg.connect(host=host, port=int(port), user="postgres", dbname="postgres", connect_timeout=2) as store:
            yield from (f"{name} is left" for (name,) in store.execute(_LEFT_TABLES).fetchall())
            yield from (f"{name} is set" for (name,) in store.execute(_LEFT_SETTINGS).fetchall())
    except psycopg.Error as problem:
        yield f"no look at its tables: {problem}"


def cache(target: Target, _: Sight) -> Iterator[str]:
    """Entries that were moved away, and our mark among those that were not."""
    if target["wire"] != "redis":
        return
    host, _, port = target["address"].rpartition(":")
    try:
        with redis.Redis(host=host, port=int(port), socket_timeout=2) as client:
            yield from (f"entries in {name}" for name in client.info("keyspace") if name != "db0")
            yield from (f"key {key.decode()}" for key in client.scan_iter(f"{_MARK}*", count=10_000))
    except redis.RedisError as problem:
        yield f"no look at its keys: {problem}"


OF_TARGETS: tuple[Callable[[Target, Sight], Iterator[str]], ...] = (
    processes,
    tampering,
    limits,
    room,
    listeners,
    edges,
    marks,
    gpu,
    release,
    database,
    cache,
)
OF_MACHINE: tuple[Callable[[Sight], Iterator[str]], ...] = (leases, files_and_saboteurs, packet_rules)

_MARK = "brownout-"
_FILES_OF_ANY_SERVER = 64
_LEFT_TABLES = "SELECT relname FROM pg_class WHERE relkind = 'v' AND relnamespace = 2200 OR relname LIKE 'brownout-%'"
_LEFT_SETTINGS = "SELECT name FROM pg_file_settings WHERE sourcefile LIKE '%auto.conf'"


def ask(url: str, token_file: str | None = None) -> dict[str, Any]:
    """A JSON object; an empty one when there is no answer."""
    try:
        allowed = {"Authorization": f"Bearer {Path(token_file).read_text().strip()}"} if token_file else {}
        with urllib.request.urlopen(urllib.request.Request(url, headers=allowed), timeout=2) as reply:
            found: dict[str, Any] = json.load(reply)
            return found
    except OSError:
        return {}


class _UnixLine(http.client.HTTPConnection):
    """HTTP on a Unix socket."""

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(2)
        self.sock.connect(self.host)


def ask_unix(path: str, route: str) -> dict[str, Any]:
    """A JSON object from a Unix socket; an empty one when there is no answer."""
    with contextlib.closing(_UnixLine(path)) as line, contextlib.suppress(OSError, http.client.HTTPException):
        line.request("GET", route, headers={"Host": "localhost"})
        found: dict[str, Any] = json.loads(line.getresponse().read())
        return found
    return {}


def process_state(pid: int) -> str | None:
    """The state letter of a process, or None when there is none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return None


def accepts(address: str) -> bool:
    """Whether a listener takes a connection."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=1):
            return True
    except OSError:
        return False


def ours(marker: str) -> list[str]:
    """Command lines of live processes that name this marker (a state folder)."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:  # it has just ended
                continue
            if marker in line:
                found.append(f"{entry.name}: {line.strip()}")
    return found
