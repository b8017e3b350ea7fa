"""The command line from outside, for the system tests and the soak: start, signal, kill, look for what is left."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

HERE = Path(__file__).parent
SHORT = HERE / "short"
ROOT = HERE.parents[1]


@dataclass
class Drill:
    """One state folder with its stack, and commands run against it."""

    folder: Path
    extra: dict[str, str] = field(default_factory=dict)

    @property
    def state(self) -> Path:
        """The state folder of the harness."""
        return self.folder / "state"

    @property
    def runs(self) -> Path:
        """Where run directories go."""
        return self.folder / "runs"

    def environment(self) -> dict[str, str]:
        """Ours, with the state folder of this drill."""
        return {**os.environ, "BROWNOUT_STATE": str(self.state), "NO_COLOR": "1", **self.extra}

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        """Begin a command in a session of its own."""
        return subprocess.Popen(
            [sys.executable, "-m", "chaos", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment(),
            cwd=ROOT,
            start_new_session=True,
            **options,
        )

    def call(self, *arguments: str, within_s: float = 90, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        process = self.start(*arguments, **options)
        try:
            out, err = process.communicate(timeout=within_s)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
            raise AssertionError(f"{arguments} did not end in {within_s}s:\n{out}\n{err}") from None
        except BaseException:  # an interrupted caller leaves no command behind
            process.kill()
            process.communicate()
            raise
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def begin_run(self, name: str, *more: str, **options: Any) -> subprocess.Popen[str]:
        """Begin to run one of the short experiments."""
        return self.start("run", str(SHORT / f"{name}.yaml"), "--no-runbook", "--out", str(self.runs), *more, **options)

    def run(self, name: str, *more: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run one of the short experiments to its end."""
        arguments = ("run", str(SHORT / f"{name}.yaml"), "--no-runbook", "--out", str(self.runs), *more)
        return self.call(*arguments, **options)

    def status(self) -> dict[str, Any]:
        """`brownout status --json`."""
        found: dict[str, Any] = json.loads(self.call("status", "--json").stdout)
        return found

    def inventory(self) -> dict[str, Any]:
        """What the supervisor wrote last."""
        found: dict[str, Any] = json.loads((self.state / "stacks" / "bundled" / "inventory.json").read_text())
        return found

    def last_run(self) -> Path:
        """The newest run directory."""
        return max(self.runs.rglob("journal.jsonl"), key=lambda p: p.stat().st_mtime).parent

    def journal(self) -> list[dict[str, Any]]:
        """All whole lines of the newest journal; none when there is no run yet."""
        try:
            lines = (self.last_run() / "journal.jsonl").read_text().splitlines()
        except (ValueError, OSError):
            return []
        return [json.loads(line) for line in lines]

    def wait_for(self, kind: str, process: subprocess.Popen[str], since: float, within_s: float = 40) -> None:
        """Wait until the journal of a run begun after `since` (wall clock) has a record of this kind."""
        give_up = time.monotonic() + within_s
        while time.monotonic() < give_up:
            if process.poll() is not None:
                out, err = process.communicate()
                raise AssertionError(f"ended with {process.returncode} before {kind}:\n{out}\n{err}")
            lines = self.journal()
            if lines and lines[0]["wall"] >= since and any(line["kind"] == kind for line in lines):
                return
            time.sleep(0.02)
        raise AssertionError(f"no {kind} within {within_s}s")

    def leases(self) -> list[str]:
        """Leases on disk."""
        folder = self.state / "leases"
        return sorted(p.name for p in folder.iterdir()) if folder.is_dir() else []


def harm(drill: Drill) -> list[str]:
    """Everything that an outsider can see to be broken on a stack that should be whole."""
    seen = [f"lease {name}" for name in drill.leases()]
    proxies: dict[str, dict[str, Any]] = {}
    for target in drill.inventory()["targets"]:
        seen += [f"{target['name']}: {trouble}" for trouble in _troubles(target)]
        admin = target["handles"]["proxy"]["admin"]
        if admin not in proxies:
            proxies[admin] = _proxies(admin)
        proxy = proxies[admin].get(target["handles"]["proxy"]["name"])
        if proxy is None or not proxy["enabled"] or proxy["toxics"]:
            seen.append(f"{target['name']}: its edge is {proxy}")
    return seen


def _troubles(target: dict[str, Any]) -> Iterator[str]:
    for pid in target["pids"]:
        state = process_state(pid)
        if state in {None, "T", "Z"}:
            yield f"process {pid} is in state {state}"
        yield from _limits_left(pid)
    for name in ("address", "via"):
        if not accepts(target[name]):
            yield f"{name} {target[name]} refuses"
    if not target["pids"]:
        yield "no process"
    if target["wire"] == "postgres":
        yield from _left_in_database(target["address"])
    if device := target["handles"].get("device"):
        yield from _left_on_gpu(device)


def _left_on_gpu(device: dict[str, str]) -> Iterator[str]:
    """What is wrong with the GPU under a target."""
    try:
        with urllib.request.urlopen(f"http://{device['admin']}/devices/{device['id']}", timeout=2) as reply:
            yield from (f"{device['id']}: condition {mark}" for mark in json.load(reply)["conditions"])
    except OSError as problem:
        yield f"no look at its GPU: {problem}"


def _limits_left(pid: int) -> Iterator[str]:
    """Groups of ours, and a limit of open files that no server could start with."""
    with contextlib.suppress(OSError):
        if "/brownout-" in Path(f"/proc/{pid}/cgroup").read_text():
            yield f"process {pid} is in a group of ours"
        if resource.prlimit(pid, resource.RLIMIT_NOFILE)[0] < 64:
            yield f"process {pid} may open no file"


def _left_in_database(address: str) -> Iterator[str]:
    """Hidden tables, views that stand in for them, and settings that somebody has written down."""
    host, _, port = address.rpartition(":")
    try:
        with psycopg.connect(host=host, port=int(port), user="postgres", dbname="postgres", connect_timeout=2) as store:
            left = (
                "SELECT relname FROM pg_class WHERE relkind = 'v' AND relnamespace = 2200 OR relname LIKE 'brownout-%'"
            )
            yield from (f"{name} is left" for (name,) in store.execute(left).fetchall())
            written = "SELECT name FROM pg_file_settings WHERE sourcefile LIKE '%auto.conf'"
            yield from (f"{name} is set" for (name,) in store.execute(written).fetchall())
    except psycopg.Error as problem:
        yield f"no look at its tables: {problem}"


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


def _proxies(admin: str) -> dict[str, dict[str, Any]]:
    try:
        with urllib.request.urlopen(f"http://{admin}/proxies", timeout=2) as reply:
            found: dict[str, dict[str, Any]] = json.load(reply)
            return found
    except OSError:
        return {}


def until_whole(drill: Drill, within_s: float) -> tuple[float, list[str]]:
    """Seconds until nothing is broken any more, and what still is when the time is up."""
    began = time.monotonic()
    while True:
        broken = harm(drill)
        took = time.monotonic() - began
        if not broken or took > within_s:
            return took, broken
        time.sleep(0.02)


def kill(process: subprocess.Popen[str]) -> None:
    """SIGKILL the harness alone; its watchdog and the stack are not in its way."""
    os.kill(process.pid, signal.SIGKILL)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.communicate(timeout=5)


def ours(marker: str) -> list[str]:
    """Command lines of live processes that name this marker (a state folder)."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                if marker in line:
                    found.append(f"{entry.name}: {line.strip()}")
    return found
