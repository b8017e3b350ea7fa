"""Agents with known tokens, an open store, and the tools as a process: what several tests here build on."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import signal
import sys
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from target_stack.fixtures import fixtures_dir, read_documents, read_lines
from target_stack.tools.main import main
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


# The official SDK takes a second of CPU to import, so servers are forked from a process that has it already.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["target_stack.tools.server"])


@contextlib.contextmanager
def main_not_imported_again():
    """A fork imports the program that asked for it, with all that it brings, unless that has no file."""
    program = sys.modules["__main__"]
    file = program.__dict__.pop("__file__", None)
    try:
        yield
    finally:
        if file is not None:
            program.__file__ = file


@dataclass
class Server:
    """The tools as a process of its own."""

    config: dict
    process: Any = None

    @property
    def url(self):
        return f"http://{self.config['listen']}"

    def start(self):
        self.process = FORKS.Process(target=main, args=(self.config,))
        with main_not_imported_again():
            self.process.start()
        give_up = time.monotonic() + 30
        while time.monotonic() < give_up:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{self.url}/ping", timeout=1):
                return self
            assert self.process.is_alive(), "the tools ended at their start"
            time.sleep(0.02)
        raise AssertionError("the tools did not come up")

    def send(self, number):
        os.kill(self.process.pid, number)

    def end(self, number=signal.SIGTERM):
        """Exit status, negative for a signal."""
        self.send(number)
        self.process.join(10)
        return self.process.exitcode

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=5) as reply:
            text = reply.read().decode()
        return json.loads(text) if text.startswith("{") else text
