"""Agents with known tokens, and the real service on a port of its own."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import pytest

from target_stack.fixtures import fixtures_dir, read_documents, read_lines
from target_stack.tools.permissions import token_hash
from target_stack.tools.store import ToolStore

ROOT = Path(__file__).parents[3]
AGENTS = {
    "support": {
        "token_sha256": token_hash("support-token"),
        "tools": {"order_status": {}, "search_docs": {}, "open_ticket": {}},
    },
    "approver": {
        "token_sha256": token_hash("approver-token"),
        "tools": {"order_status": {}, "refund_order": {"amount_cents": {"at_most": 5000}}},
    },
    "kiosk": {
        "token_sha256": token_hash("kiosk-token"),
        "tools": {"order_status": {"order": {"of_customer": "C-101"}}},
    },
}


def open_store(path=None):
    orders = read_lines(fixtures_dir() / "documents" / "orders.jsonl")
    return ToolStore(path, orders, ((d.id, d.body) for d in read_documents()))


@pytest.fixture
def store():
    opened = open_store()
    yield opened
    opened.close()


@dataclass
class Server:
    """The tools as a process of its own."""

    config: dict
    process: subprocess.Popen | None = None

    @property
    def url(self):
        return f"http://{self.config['listen']}"

    def start(self):
        command = [sys.executable, "-m", "target_stack.serve", "tools", json.dumps(self.config)]
        self.process = subprocess.Popen(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
        give_up = time.monotonic() + 30
        while time.monotonic() < give_up:
            with contextlib.suppress(OSError, urllib.error.URLError):
                with urllib.request.urlopen(f"{self.url}/ping", timeout=1):
                    return self
            assert self.process.poll() is None, "the tools ended at their start"
            time.sleep(0.02)
        raise AssertionError("the tools did not come up")

    def end(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        return self.process.wait(10)

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=5) as reply:
            text = reply.read().decode()
        return json.loads(text) if text.startswith("{") else text


@pytest.fixture
def server(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    made = Server({"listen": f"127.0.0.1:{port}", "data_dir": str(tmp_path), "agents": AGENTS})
    yield made
    if made.process and made.process.poll() is None:
        made.process.send_signal(signal.SIGCONT)
        made.end(signal.SIGKILL)
