"""A store in memory, and the real service on a port of its own."""

from __future__ import annotations

import signal
import socket
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from shop import AGENTS, Server, open_store


@pytest.fixture
def store():
    opened = open_store()
    yield opened
    opened.close()


@pytest.fixture
def server(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    made = Server({"listen": f"127.0.0.1:{port}", "data_dir": str(tmp_path), "agents": AGENTS})
    yield made
    if made.process and made.process.is_alive():
        made.end(signal.SIGKILL)
