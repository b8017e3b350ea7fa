"""The contract again with real processes, sockets and signals: what the fakes promise is what the machine does."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from chaos.adapters.host import real_host
from chaos.faults.fault import Fault
from chaos.faults.grips.sightings import look_until_seen
from chaos.faults.net_down import NetDown
from chaos.faults.net_latency import NetLatency
from chaos.faults.node_drain import NodeDrain
from chaos.faults.node_loss import NodeLoss
from chaos.faults.noop import Noop
from chaos.faults.process_crash_loop import ProcessCrashLoop
from chaos.faults.process_exit_zero import ProcessExitZero
from chaos.faults.process_kill import ProcessKill
from chaos.faults.process_restart import ProcessRestart
from chaos.faults.process_slow_start import ProcessSlowStart
from chaos.faults.process_stall import ProcessStall
from chaos.inventory import Target
from chaos.ports import Host
from chaos.testing.conformance import check_fault
from chaos.units import Duration
from tests.loopback import free_port

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]

SERVER = """
import ctypes, os, signal, socket, sys
from time import sleep
parent = os.getpid()
if os.fork() == 0:
    ctypes.CDLL(None).prctl(1, 9)
    if os.getppid() == parent:  # else it died before it was asked to take this one along
        sleep(600)
    os._exit(0)
signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), reuse_port=False)
while True:
    client, _ = listener.accept()
    with client:
        if client.recv(4096):
            client.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n")
"""


CHURNING = """
import os, signal, time
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
print("up", flush=True)
while True:
    if os.fork() == 0:
        import ctypes
        ctypes.CDLL(None).prctl(1, 9)
        time.sleep(0.02)
        os._exit(0)
    time.sleep(0.005)
"""


@dataclass
class MiniSupervisor:
    """Keeps one server process (with a core child) running and answers the control API, as the bundled one does."""

    folder: Path
    admin: int
    port: int = field(default_factory=free_port)
    via: int = field(default_factory=free_port)
    holds: set[str] = field(default_factory=set)
    burdens: dict[str, dict[str, Any]] = field(default_factory=dict)
    starts: int = 0
    due: float = 0.0
    ended: int | None = None
    process: subprocess.Popen[bytes] | None = None

    @property
    def target(self) -> Target:
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return Target(
            name="tools",
            role="tool",
            node="node-1",
            pids=(pid, *map(int, children)),
            address=f"127.0.0.1:{self.port}",
            via=f"127.0.0.1:{self.via}",
            handles={
                "process_group": pid,
                "supervisor": str(self.folder / "control.sock"),
                "proxy": {"admin": f"127.0.0.1:{self.admin}", "name": "tools"},
            },
        )

    def start(self) -> None:
        self.process = subprocess.Popen([sys.executable, "-S", "-c", SERVER, str(self.port)], start_new_session=True)
        self.starts += 1
        for burden in self.burdens.values():
            if "life_s" in burden:
                asyncio.get_running_loop().call_later(burden["life_s"], self.strike, burden["by"], self.process.pid)

    def strike(self, mark: str, pid: int) -> None:
        if mark in self.burdens and self.process.pid == pid and self.process.poll() is None:
            os.killpg(pid, signal.SIGKILL)

    async def keep_running(self) -> None:
        while True:
            if self.process.poll() is not None and self.ended is None:
                self.ended = self.process.returncode
                delays = (each.get("start_delay_s", 0.0) for each in self.burdens.values())
                self.due = time.monotonic() + max(delays, default=0.0)
            if self.ended is not None and not self.holds and time.monotonic() >= self.due:
                self.start()
                self.ended = None
            await asyncio.sleep(0.005)

    async def status(self, _: web.Request) -> web.Response:
        alive = self.process.poll() is None
        state = "ready" if alive else "held" if self.holds else "starting"
        record = self.target.to_json() if alive else {"name": "tools", "pids": []}
        marks = {"holds": sorted(self.holds), "burdens": sorted(self.burdens)}
        past = {"starts": self.starts, "last_exit": self.process.returncode}
        return web.json_response({"targets": [{**record, "state": state, **marks, **past}]})

    async def hold(self, request: web.Request) -> web.Response:
        self.holds.add((await request.json())["by"])
        return web.json_response({"holds": sorted(self.holds)})

    async def burden(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.burdens[body["by"]] = body
        return web.json_response({"burdens": sorted(self.burdens)})

    async def release(self, request: web.Request) -> web.Response:
        mark = (await request.json())["by"]
        self.holds.discard(mark)
        self.burdens.pop(mark, None)
        self.due = 0.0
        return web.json_response({"holds": sorted(self.holds)})


@contextlib.asynccontextmanager
async def _supervised(folder: Path, admin: int) -> AsyncIterator[MiniSupervisor]:
    supervisor = MiniSupervisor(folder, admin)
    app = web.Application()
    app.router.add_get("/status", supervisor.status)
    app.router.add_post("/targets/tools/hold", supervisor.hold)
    app.router.add_post("/targets/tools/burden", supervisor.burden)
    app.router.add_post("/targets/tools/release", supervisor.release)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.UnixSite(runner, str(folder / "control.sock")).start()
    supervisor.start()
    keeping = asyncio.create_task(supervisor.keep_running())
    try:
        yield supervisor
    finally:
        keeping.cancel()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(supervisor.process.pid, signal.SIGKILL)
        supervisor.process.wait()
        await runner.cleanup()


@contextlib.contextmanager
def _proxied(admin: int) -> Iterator[None]:
    command = [sys.executable, "-m", "chaos.proxy", "--host", "127.0.0.1", "--port", str(admin)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as proxy:
        try:
            yield
        finally:
            proxy.kill()


async def _until_answers(host: Host, method: str, url: str, json: object = None) -> None:
    give_up = host.clock.now() + 10
    while (reply := await host.http.call(method, url, json)).status not in (200, 201):
        assert host.clock.now() < give_up, reply
        await host.clock.sleep_until(host.clock.now() + 0.02)


async def _check(fault: Fault, folder: Path, *, lasting: bool = True) -> None:
    admin = free_port()
    with _proxied(admin):
        async with _supervised(folder, admin) as supervisor, real_host() as host:
            await _check_behind(fault, supervisor, host, lasting=lasting)


async def _check_behind(fault: Fault, supervisor: MiniSupervisor, host: Host, *, lasting: bool) -> None:
    listener = {
        "name": "tools",
        "listen": f"127.0.0.1:{supervisor.via}",
        "upstream": f"127.0.0.1:{supervisor.port}",
    }
    await _until_answers(host, "GET", f"http://127.0.0.1:{supervisor.admin}/version")
    await _until_answers(host, "POST", f"http://127.0.0.1:{supervisor.admin}/populate", [listener])
    while await host.network.round_trip(f"127.0.0.1:{supervisor.via}", "http", 1.0) is None:
        await host.clock.sleep_until(host.clock.now() + 0.01)
    await check_fault(fault, (supervisor.target,), host, within_s=10.0, lasting=lasting)
    assert supervisor.holds == set()


@pytest.mark.parametrize(
    "fault",
    [
        Noop(),
        ProcessKill(),
        ProcessKill(signal="TERM"),
        ProcessExitZero(),
        ProcessStall(),
        ProcessStall(part="all"),
        NetLatency(latency=Duration(0.12)),
        NetDown(),
        NodeLoss(),
        NodeDrain(),
    ],
    ids=repr,
)
def test_a_fault_keeps_its_contract_on_the_real_machine(fault: Fault, tmp_path: Path) -> None:
    asyncio.run(_check(fault, tmp_path))


@pytest.mark.parametrize(
    "fault",
    [
        ProcessKill(restart="supervisor"),
        ProcessRestart(),
        ProcessRestart(drain=False),
        ProcessCrashLoop(life=Duration(0.1)),
        ProcessSlowStart(delay=Duration(0.5)),
    ],
    ids=repr,
)
def test_harm_that_the_supervisor_ends_is_over_when_the_successor_serves(fault: Fault, tmp_path: Path) -> None:
    asyncio.run(_check(fault, tmp_path, lasting=False))


def test_a_freeze_of_all_takes_children_that_come_and_go_as_they_are(churning: int) -> None:
    """As a database's, one for every client: some leave after the fault was prepared, others are born."""
    target = Target("store", "vector-store", None, (churning,), "127.0.0.1:1")

    async def main() -> None:
        async with real_host() as host:
            for _ in range(8):
                await _frozen_and_woken(ProcessStall(part="all"), target, host)

    asyncio.run(main())


async def _frozen_and_woken(fault: ProcessStall, target: Target, host: Host) -> None:
    undo = await fault.prepare((target,), host)
    await host.clock.sleep_until(host.clock.now() + 0.03)
    await fault.inject((target,), undo, host)
    seen = await look_until_seen(lambda: fault.confirm((target,), undo, host), host.clock, within_s=1.0)
    give_up = host.clock.now() + 1.0
    while not (frozen := _states_of_children(target.pids[0])) <= {"T", "Z"} and host.clock.now() < give_up:
        await host.clock.sleep_until(host.clock.now() + 0.01)
    await fault.revert(undo, host)
    gone = await look_until_seen(lambda: fault.confirm_gone((), undo, host), host.clock, within_s=1.0)
    assert (seen.seen, frozen <= {"T", "Z"}, gone.seen) == (True, True, True), (seen.what, frozen, gone.what)


def _states_of_children(pid: int) -> set[str]:
    states = set()
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with contextlib.suppress(OSError):  # it was about to end
            states.add(Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0])
    return states


@pytest.fixture
def churning() -> Iterator[int]:
    """The number of a process whose children live for a moment each."""
    with subprocess.Popen([sys.executable, "-S", "-c", CHURNING], stdout=subprocess.PIPE) as parent:
        parent.stdout.readline()
        yield parent.pid
        parent.kill()
