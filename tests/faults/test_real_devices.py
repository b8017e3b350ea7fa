"""The contract of the GPU faults, with a real engine on a real device process and its register file."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.adapters.host import real_host
from chaos.faults.fault import Fault
from chaos.faults.gpu_ecc import GpuEcc
from chaos.faults.gpu_hang import GpuHang
from chaos.faults.gpu_memory_pressure import GpuMemoryPressure
from chaos.faults.gpu_throttle import GpuThrottle
from chaos.faults.gpu_xid import GpuXid
from chaos.inventory import Target
from chaos.testing.conformance import check_fault
from chaos.units import Ratio

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]


def free_address() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{probe.getsockname()[1]}"


@contextlib.contextmanager
def serving(component: str, config: dict[str, object]) -> Iterator[None]:
    argv = [sys.executable, "-m", "target_stack.serve", component, json.dumps(config)]
    with subprocess.Popen(argv, cwd=ROOT, stderr=subprocess.DEVNULL) as process:
        for _ in range(500):
            with contextlib.suppress(OSError), urllib.request.urlopen(f"http://{config['listen']}/ping"):
                break
            time.sleep(0.02)
        yield
        process.kill()


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    path = tmp_path_factory.mktemp("devices") / "n-gpu0"
    devices, address = free_address(), free_address()
    watched = {"name": "devices", "listen": devices, "devices": [{"id": "n-gpu0", "path": str(path)}]}
    served = {"name": "engine-t", "listen": address, "device": str(path)}
    with serving("device", watched), serving("engine", served):
        handles = {"device": {"admin": devices, "id": "n-gpu0"}}
        yield Target("engine-t", "engine", None, (), address, handles=handles)


@pytest.mark.parametrize(
    "fault",
    [
        GpuThrottle(clock=Ratio(0.5)),
        GpuEcc(errors="corrected"),
        GpuMemoryPressure(share=Ratio(0.5)),
        GpuXid(code=63),
        GpuHang(),
    ],
    ids=repr,
)
def test_a_fault_of_the_gpu_keeps_its_contract_on_the_real_machine(fault: Fault, engine: Target) -> None:
    async def main() -> None:
        async with real_host() as host:
            await check_fault(fault, (engine,), host, within_s=10.0)

    asyncio.run(main())
