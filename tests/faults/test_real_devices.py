"""The contract of the GPU faults, with a real engine on a real device process and its register file."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.adapters.host import real_host
from chaos.faults.fault import Fault
from chaos.faults.gpu_contention import GpuContention
from chaos.faults.gpu_ecc import GpuEcc
from chaos.faults.gpu_hang import GpuHang
from chaos.faults.gpu_lost import GpuLost
from chaos.faults.gpu_memory_pressure import GpuMemoryPressure
from chaos.faults.gpu_mig_reconfigure import GpuMigReconfigure
from chaos.faults.gpu_throttle import GpuThrottle
from chaos.faults.gpu_xid import GpuXid
from chaos.inventory import Target
from chaos.testing.conformance import check_fault, check_negative_control
from chaos.units import Ratio
from tests.loopback import free_address

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]


@contextlib.contextmanager
def serving(component: str, config: dict[str, object]) -> Iterator[None]:
    """The component, started again whenever it dies, as a supervisor does."""
    again = ["bash", "-c", 'while :; do "$@"; sleep 0.2; done', "again"]
    argv = [*again, sys.executable, "-m", "target_stack.serve", component, json.dumps(config)]
    with subprocess.Popen(argv, cwd=ROOT, stderr=subprocess.DEVNULL, start_new_session=True) as process:
        for _ in range(500):
            with contextlib.suppress(OSError), urllib.request.urlopen(f"http://{config['listen']}/ping"):
                break
            time.sleep(0.02)
        yield
        os.killpg(process.pid, signal.SIGKILL)


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
        GpuThrottle(reason="sw_power_cap"),
        GpuContention(share=Ratio(0.7)),
        GpuEcc(errors="corrected"),
        GpuEcc(contained=False),
        GpuMemoryPressure(share=Ratio(0.5)),
        GpuMigReconfigure(),
        GpuXid(code=63),
        GpuHang(),
        GpuLost(),
    ],
    ids=repr,
)
def test_a_fault_of_the_gpu_keeps_its_contract_on_the_real_machine(fault: Fault, engine: Target) -> None:
    async def main() -> None:
        async with real_host() as host:
            await check_fault(fault, (engine,), host, within_s=10.0)

    asyncio.run(main())


@pytest.mark.parametrize(
    "fault",
    [GpuContention(), GpuEcc(), GpuLost(), GpuMemoryPressure(), GpuMigReconfigure(), GpuThrottle(), GpuXid()],
    ids=repr,
)
def test_a_gpu_that_nobody_harms_is_never_seen_harmed(fault: Fault, engine: Target) -> None:
    async def main() -> None:
        async with real_host() as host:
            await check_negative_control(fault, (engine,), host, within_s=0.5)

    asyncio.run(main())
