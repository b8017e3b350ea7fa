"""A real proxy process, and small upstreams, on loopback."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from tests.proxy.peers import Admin, Upstream

Start = Callable[..., Admin]


@pytest.fixture(scope="module")
def start_proxy() -> Iterator[Start]:
    """Starts proxy processes with the given flags; each must leave cleanly on SIGTERM."""
    processes: list[subprocess.Popen[str]] = []

    def start(*flags: str) -> Admin:
        command = [sys.executable, "-m", "chaos.proxy", "--host", "127.0.0.1", "--port", "0", *flags]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        processes.append(process)
        assert process.stderr
        first = process.stderr.readline()
        found = re.search(r"admin API on ([0-9.]+):(\d+)", first)
        assert found, first
        return Admin(found[1], int(found[2]), process.pid)

    yield start
    for process in processes:
        process.send_signal(signal.SIGTERM)
    for process in processes:
        _, log = process.communicate(timeout=10)
        assert process.returncode == 0
        assert "Traceback" not in log, log


@pytest.fixture(scope="module")
def admin(start_proxy: Start) -> Admin:
    return start_proxy("--seed", "7")


@pytest.fixture
def upstream() -> Iterator[Upstream]:
    with Upstream() as running:
        yield running
