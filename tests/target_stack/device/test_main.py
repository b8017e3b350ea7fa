"""The device process as it runs in the stack: a program of its own over register files."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from target_stack.device.registers import Registers

pytestmark = pytest.mark.system


@pytest.fixture
def device(tmp_path) -> Iterator[tuple[str, Path, subprocess.Popen]]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    config = {"name": "devices", "listen": address, "devices": [{"id": "n-gpu0", "path": str(tmp_path / "gpu")}]}
    argv = [sys.executable, "-m", "target_stack.serve", "device", json.dumps(config)]
    with subprocess.Popen(argv, cwd=Path(__file__).parents[3]) as process:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            try:
                get(address, "/ping")
                break
            except OSError:
                time.sleep(0.02)
        yield address, tmp_path / "gpu", process
        process.kill()


def get(address: str, path: str):
    with urllib.request.urlopen(f"http://{address}{path}", timeout=5) as reply:
        return json.loads(reply.read())


def post(address: str, path: str, body):
    request = urllib.request.Request(f"http://{address}{path}", json.dumps(body).encode(), method="POST")
    with urllib.request.urlopen(request, timeout=5) as reply:
        return reply.status


def test_work_in_the_registers_is_load_at_the_other_end_and_orders_come_back(device):
    address, path, _ = device
    registers = Registers.at(path)
    assert (registers["speed"], registers["total_bytes"]) == (1.0, 24 << 30)
    registers["busy_s"] += 1000.0
    assert get(address, "/nvml/v1/devices/0/nvmlDeviceGetUtilizationRates")["value"]["gpu"] == 100
    assert post(address, "/devices/n-gpu0/conditions", {"kind": "hung", "mark": "m"}) == 201
    assert registers["hung"] == 1.0


def test_it_is_small_and_ends_in_order(device):
    _, _, process = device
    status = Path(f"/proc/{process.pid}/status").read_text()
    assert int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) < 30_000
    process.terminate()
    assert process.wait(5) == 0
