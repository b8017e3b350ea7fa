"""The agents as real processes between the real tools and a small model, killed and started again by hand.

Every client's request is sent until it is answered, always under its own key, as a careful client does.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from target_stack.agent.plans import KINDS, SUBMITTED
from target_stack.tools.permissions import token_hash

ROOT = Path(__file__).parents[2]
GOALS = {
    "order_inquiry": "Where is order B-1001, and how long may I return headphones?",
    "complaint": "The kettle of order B-1003 leaks.",
    "refund": "Please pay back 2 cents of order B-1008.",
}
TOOLS_OF = {
    "support": {"order_status": {}, "open_ticket": {}},
    "approver": {"order_status": {}, "refund_order": {"amount_cents": {"at_most": 5000}}},
}
DID = {"complaint": "open_ticket", "refund": "refund_order"}
"""The one side effect of a kind."""
LONGEST_LIFE_S = 0.9
"""A task takes about half a second with this model, so a kill at a random instant up to here falls into all of it."""


class Model(BaseHTTPRequestHandler):
    """A front door that knows plans and one sentence."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))["messages"][-1]["content"]
        time.sleep(0.05)
        plans = [KINDS[kind].description for kind in SUBMITTED if f"takes a {kind}?" in asked]
        text = plans[0] if plans else "Headphones can be returned within 45 days."
        body = json.dumps({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        with contextlib.suppress(OSError):
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Silent."""


class ModelServer(ThreadingHTTPServer):
    """Does not mind callers that die."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Silent."""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def call(method: str, url: str, body: Any = None, *, key: str | None = None, timeout_s: float = 5) -> tuple[int, Any]:
    """Status and JSON; 0 when no answer came."""
    headers = {"content-type": "application/json"} | ({"idempotency-key": key} if key else {})
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers=headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as reply:
            return reply.status, json.loads(reply.read())
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"null")
    except (OSError, ValueError):
        return 0, None


@dataclass
class Agents:
    """One folder with its agents and tools."""

    folder: Path
    settings: dict[str, Any] = field(default_factory=dict)
    agent_at: str = field(default_factory=lambda: f"127.0.0.1:{_free_port()}")
    tools_at: str = field(default_factory=lambda: f"127.0.0.1:{_free_port()}")
    model_at: str = ""
    nest: Nest = None  # type: ignore[assignment]  # set by `agents`
    pid: int = 0
    submitted: dict[str, str] = field(default_factory=dict)

    def live(self) -> None:
        """Start the agents; whoever asks them first waits."""
        config = {
            "listen": self.agent_at,
            "gateway": f"http://{self.model_at}",
            "tools": f"http://{self.tools_at}",
            "model": "m",
            "data_dir": str(self.folder),
            "tokens": {name: f"{name}-token" for name in TOOLS_OF},
            "waits": {"task_s": 60.0, "agent_s": 30.0},
            **self.settings,
        }
        self.pid = self.nest.start("agent", config, self.folder / "agent.log")

    def die(self, victim: int) -> None:
        """SIGKILL: the first process is the parent, the others are agents apart, whose death ends the parent too."""
        pids = (self.pid, *children(self.pid))
        with contextlib.suppress(ProcessLookupError):
            os.kill(pids[victim % len(pids)], signal.SIGKILL)
        self.nest.wait(self.pid)

    def submit(self, kind: str, key: str) -> bool:
        """Whether the task is known to be accepted."""
        status, _ = call("POST", f"http://{self.agent_at}/v1/agent/tasks", {"kind": kind, "goal": GOALS[kind]}, key=key)
        self.submitted[key] = kind
        return status in (200, 202)

    def until_answered(self, kind: str, key: str, within_s: float = 30) -> None:
        """Submit until it is accepted."""
        until(lambda: self.submit(kind, key), f"{key} is accepted", within_s)

    def finished(self, within_s: float = 60) -> dict[str, Any]:
        """Every submitted task once none is open, by its key."""
        found: dict[str, Any] = {}

        def all_ended() -> bool:
            for key in self.submitted:
                if found.get(key, {}).get("state") in (None, "running"):
                    found[key] = call("GET", f"http://{self.agent_at}/v1/agent/tasks/{key}")[1] or {}
            return all(task.get("state") not in (None, "running") for task in found.values())

        until(all_ended, "all tasks have ended", within_s)
        return found

    def ledger(self) -> list[dict[str, Any]]:
        """Every side effect that happened."""
        entries: list[dict[str, Any]] = []
        while True:
            after = entries[-1]["seq"] if entries else 0
            page = call("GET", f"http://{self.tools_at}/ledger?after={after}")[1]["entries"]
            if not page:
                return entries
            entries += page

    def wrong(self) -> str | None:
        """What is not as it should be once all has ended: every task done, every side effect there once."""
        tasks = self.finished()
        undone = {key: (task["state"], task["reason"]) for key, task in tasks.items() if task["state"] != "done"}
        if undone:
            return f"not done: {undone}"
        happened = [entry["key"].rpartition(".")[0].partition(".")[0] for entry in self.ledger()]
        wanted = [task["id"] for task in tasks.values() if task["kind"] in DID]
        return None if sorted(happened) == sorted(wanted) else f"{len(wanted)} effects wanted, {len(happened)} happened"


def until(seen: Any, what: str, within_s: float) -> None:
    """Wait for it. Raises AssertionError."""
    end = time.monotonic() + within_s
    while not seen():
        assert time.monotonic() < end, f"not within {within_s:g}s: {what}"
        time.sleep(0.02)


class Nest:
    """The stack's own nursery in a process apart, so that a start takes milliseconds. It takes its children along."""

    def __init__(self) -> None:
        """Ready when it answers."""
        ours, theirs = socket.socketpair()
        code = (
            "import socket, sys; from target_stack.nursery import Nursery, preload; preload();"
            "Nursery(socket.socket(fileno=int(sys.argv[1]))).run()"
        )
        self._process = subprocess.Popen(
            [sys.executable, "-c", code, str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        theirs.close()
        ours.settimeout(60)
        self._line, self._news = ours, ours.makefile()
        self._ended: set[int] = set()

    def start(self, component: str, config: dict[str, Any], log: Path) -> int:
        """Fork one component; its pid."""
        job = {"name": component, "component": component, "config": config, "log": str(log)}
        self._line.sendall(json.dumps(job).encode() + b"\n")
        while "started" not in (news := self._hear()):
            pass
        pid: int = news["pid"]
        return pid

    def wait(self, pid: int) -> None:
        """Until it has ended."""
        while pid not in self._ended:
            self._hear()

    def _hear(self) -> dict[str, Any]:
        news: dict[str, Any] = json.loads(self._news.readline())
        self._ended |= {news["exited"]} if "exited" in news else set()
        return news

    def close(self) -> None:
        """End it and all that it started."""
        self._news.close()
        self._line.close()
        self._process.wait(10)


def children(pid: int) -> list[int]:
    """Processes that this one forked."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


@contextlib.contextmanager
def agents(folder: Path, **settings: Any) -> Iterator[Agents]:
    """Tools, a model and agents, all gone afterwards."""
    found = Agents(folder, settings)
    model = ModelServer(("127.0.0.1", 0), Model)
    threading.Thread(target=model.serve_forever, daemon=True).start()
    found.model_at = f"127.0.0.1:{model.server_port}"
    identities = {name: {"token_sha256": token_hash(f"{name}-token"), "tools": t} for name, t in TOOLS_OF.items()}
    (folder / "tools").mkdir()
    with contextlib.closing(Nest()) as found.nest:
        config = {"listen": found.tools_at, "data_dir": str(folder / "tools"), "agents": identities}
        found.nest.start("tools", config, folder / "tools.log")
        until(lambda: call("GET", f"http://{found.tools_at}/ping")[0] == 200, "the tools serve", 30)
        found.live()
        yield found
    model.shutdown()
    model.server_close()


def shake(place: Agents, kills: int, dice: random.Random) -> None:
    """Submit one task of every kind, let them run for a random while, kill, start again; so many times."""
    for number in range(kills):
        for kind in GOALS:
            place.until_answered(kind, f"{number}-{kind}")
        time.sleep(dice.uniform(0, LONGEST_LIFE_S))
        place.die(number % 5 == 4)  # every fifth time it is the approver's process that is killed
        place.live()


def resumed(place: Agents) -> int:
    """How many tasks were found in the middle of a step, all lives together."""
    with urllib.request.urlopen(f"http://{place.agent_at}/metrics", timeout=5) as reply:
        lines = reply.read().decode().splitlines()
    return sum(int(float(line.split()[-1])) for line in lines if line.startswith("agent_tasks_resumed_total"))
