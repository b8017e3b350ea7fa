"""The contract again with real processes, sockets and signals: what the fakes promise is what the machine does."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web

from chaos.adapters.host import real_host
from chaos.faults.fault import Fault
from chaos.faults.net_down import NetDown
from chaos.faults.net_latency import NetLatency
from chaos.faults.node_loss import NodeLoss
from chaos.faults.noop import Noop
from chaos.faults.process_kill import ProcessKill
from chaos.faults.process_stall import ProcessStall
from chaos.inventory import Target
from chaos.ports import Host
from chaos.testing.conformance import check_fault
from chaos.units import Duration

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]

SERVER = """
import os, socket, sys
from time import sleep
if os.fork() == 0:
    import ctypes
    ctypes.CDLL(None).prctl(1, 9)
    sleep(600)
listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), reuse_port=False)
while True:
    client, _ = listener.accept()
    with client:
        if client.recv(4096):
            client.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n")
"""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class MiniSupervisor:
    """Keeps one server process (with a core child) running and answers the control API, as the bundled one does."""

    folder: Path
    admin: int
    port: int = field(default_factory=_free_port)
    via: int = field(default_factory=_free_port)
    holds: set[str] = field(default_factory=set)
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

    async def keep_running(self) -> None:
        while True:
            if self.process.poll() is not None and not self.holds:
                self.start()
            await asyncio.sleep(0.005)

    async def status(self, _: web.Request) -> web.Response:
        alive = self.process.poll() is None
        state = "ready" if alive else "held" if self.holds else "starting"
        record = self.target.to_json() if alive else {"name": "tools", "pids": []}
        return web.json_response({"targets": [{**record, "state": state, "holds": sorted(self.holds)}]})

    async def hold(self, request: web.Request) -> web.Response:
        self.holds.add((await request.json())["by"])
        return web.json_response({"holds": sorted(self.holds)})

    async def release(self, request: web.Request) -> web.Response:
        self.holds.discard((await request.json())["by"])
        return web.json_response({"holds": sorted(self.holds)})


@contextlib.asynccontextmanager
async def _supervised(folder: Path, admin: int) -> AsyncIterator[MiniSupervisor]:
    supervisor = MiniSupervisor(folder, admin)
    app = web.Application()
    app.router.add_get("/status", supervisor.status)
    app.router.add_post("/targets/tools/hold", supervisor.hold)
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
    admin = _free_port()
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
        ProcessStall(),
        ProcessStall(part="all"),
        NetLatency(latency=Duration(0.12)),
        NetDown(),
        NodeLoss(),
    ],
    ids=repr,
)
def test_a_fault_keeps_its_contract_on_the_real_machine(fault: Fault, tmp_path: Path) -> None:
    asyncio.run(_check(fault, tmp_path))


def test_a_kill_that_the_supervisor_answers_is_over_when_the_successor_serves(tmp_path: Path) -> None:
    asyncio.run(_check(ProcessKill(restart="supervisor"), tmp_path, lasting=False))
