"""The contract of the faults that restart an engine with other settings, with a real engine."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from chaos.adapters.host import real_host
from chaos.faults.kv_cache_shrink import KvCacheShrink
from chaos.inventory import Target
from chaos.testing.conformance import check_fault, check_negative_control

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]


class EngineKeeper:
    """Keeps one real engine running and takes burdens on its settings, as the bundled supervisor does."""

    def __init__(self, folder: Path) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.address = f"127.0.0.1:{probe.getsockname()[1]}"
        self.socket = folder / "control.sock"
        self.burdens: dict[str, dict[str, Any]] = {}
        self.process: asyncio.subprocess.Process | None = None

    def target(self) -> Target:
        handles = {"supervisor": str(self.socket)}
        return Target("engine-t", "engine", None, (self.process.pid,), self.address, handles=handles)

    async def keep_running(self) -> None:
        while True:
            changed = {key: value for each in self.burdens.values() for key, value in each["settings"].items()}
            config = {"name": "engine-t", "listen": self.address, **changed}
            argv = [sys.executable, "-m", "target_stack.serve", "engine", json.dumps(config)]
            self.process = await asyncio.create_subprocess_exec(*argv, cwd=ROOT, stderr=asyncio.subprocess.DEVNULL)
            await self.process.wait()

    def restart(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGTERM)

    async def status(self, _: web.Request) -> web.Response:
        record = {**self.target().to_json(), "state": "ready", "holds": [], "burdens": sorted(self.burdens)}
        return web.json_response({"targets": [record]})

    async def burden(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.burdens[body["by"]] = body
        self.restart()
        return web.json_response({"burdens": sorted(self.burdens)})

    async def release(self, request: web.Request) -> web.Response:
        if self.burdens.pop((await request.json())["by"], None):
            self.restart()
        return web.json_response({"holds": []})


@contextlib.asynccontextmanager
async def kept_engine(folder: Path) -> AsyncIterator[EngineKeeper]:
    keeper, app = EngineKeeper(folder), web.Application()
    app.router.add_get("/status", keeper.status)
    app.router.add_post("/targets/engine-t/burden", keeper.burden)
    app.router.add_post("/targets/engine-t/release", keeper.release)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.UnixSite(runner, str(keeper.socket)).start()
    keeping = asyncio.create_task(keeper.keep_running())
    try:
        yield keeper
    finally:
        keeping.cancel()
        with contextlib.suppress(ProcessLookupError):
            os.kill(keeper.process.pid, signal.SIGKILL)
        await keeper.process.wait()
        await runner.cleanup()


def test_an_engine_really_runs_with_the_other_settings_and_then_with_its_own(tmp_path: Path) -> None:
    async def main() -> None:
        fault = KvCacheShrink()
        async with kept_engine(tmp_path) as keeper, real_host() as host:
            while await host.network.round_trip(keeper.address, "http", 1.0) is None:
                await host.clock.sleep_until(host.clock.now() + 0.02)
            await check_negative_control(fault, (keeper.target(),), host)
            await check_fault(fault, (keeper.target(),), host, within_s=15.0)

    asyncio.run(main())
