"""The hog with the real torch: on the GPU where there is one, on the processor elsewhere, against a real engine.

torch comes from PyPI only with all of CUDA (2.9 GiB to load, 5.3 GiB on disk), so these run where it is installed:
`.venv/bin/pip install '.[gpu]'`.
"""

from __future__ import annotations

import asyncio
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
from chaos.faults.gpu_contention import GpuContention
from chaos.faults.gpu_memory_pressure import GpuMemoryPressure
from chaos.faults.grips.hog import REAL, STAND_IN, HogFault
from chaos.inventory import Target
from chaos.testing.conformance import check_fault, check_negative_control
from chaos.units import Ratio

pytest.importorskip("torch", reason="torch is not installed: 2.9 GiB; .venv/bin/pip install '.[gpu]' brings it")
pytestmark = [pytest.mark.real, pytest.mark.torch, pytest.mark.timeout(600)]

BOTH = (GpuMemoryPressure(share=Ratio(0.02)), GpuContention(share=Ratio(0.4)))


@pytest.fixture(scope="module")
def engine() -> Iterator[Target]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    config = json.dumps({"name": "engine-t", "listen": address})
    argv = [sys.executable, "-m", "target_stack.serve", "engine", config]
    with subprocess.Popen(argv, cwd=Path(__file__).parents[3], stderr=subprocess.DEVNULL) as process:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                urllib.request.urlopen(f"http://{address}/ping").close()
                break
            except OSError:
                time.sleep(0.05)
        yield Target("engine-t", "engine", None, (process.pid,), address, handles={"cuda": 0})
        process.kill()


@pytest.mark.parametrize("fault", BOTH, ids=repr)
def test_the_hog_keeps_the_contract_on_whatever_this_machine_has(fault: HogFault, engine: Target) -> None:
    async def main() -> str:
        async with real_host() as host:
            await check_negative_control(fault, (engine,), host, within_s=0.5)
            await check_fault(fault, (engine,), host, within_s=20.0)
            return str((await fault.prepare((engine,), host))["fidelity"])

    assert asyncio.run(main()) in (REAL, STAND_IN)
