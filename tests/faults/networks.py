"""Networks for one test alone: a namespace of its own, so that no rule ever touches the machine's."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from chaos.adapters.machine import has
from chaos.faults.grips.packets import PacketFault
from chaos.inventory import Target

ROOT = Path(__file__).parents[2]
_CLONE_NEWNET = 0x40000000
_SERVE = """
import socket
from tests.faults.machine import Engine, Server
Server.address_family = socket.AF_INET6 if ":" in {host!r} else socket.AF_INET
with Server(({host!r}, 0), Engine) as server:
    print(server.server_address[1], flush=True)
    server.serve_forever()
"""

_missing = [f"{need} ({need.how})" for need in PacketFault.needs if not has(need)]
needs_packets = pytest.mark.skipif(bool(_missing), reason=f"needs {', '.join(_missing)}")


def in_network_of_its_own(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run it in a thread whose network is new; processes that it starts live there too."""
    with ThreadPoolExecutor(1) as thread:
        thread.submit(_alone, main).result()


def _alone(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "no network of our own")
    command("ip", "link", "set", "lo", "up")
    asyncio.run(main())


def command(*words: str) -> str:
    """Run a program to its end; what it says."""
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


@contextlib.contextmanager
def engine_process(name: str = "engine-a", host: str = "127.0.0.1", *, elsewhere: bool = False) -> Iterator[Target]:
    """A model server as a process, in this network or in one of its own."""
    words = [sys.executable, "-c", _SERVE.format(host=host)]
    there = ["unshare", "--net", *words] if elsewhere else words
    with subprocess.Popen(there, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        port = process.stdout.readline().strip()
        at = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        yield Target(name, "engine", None, (process.pid,), at)
        process.kill()


def rules(*entry: str, tool: str = "iptables") -> list[str]:
    """Rules in the table that packet faults use."""
    return [line for line in command(*entry, tool, "-t", "mangle", "-S").splitlines() if line.startswith("-A")]


def join(pid: int, near: str, far: str) -> None:
    """A cable between this network and that of a process."""
    command("ip", "link", "add", "near", "type", "veth", "peer", "name", "far", "netns", str(pid))
    command("ip", "address", "add", f"{near}/24", "dev", "near")
    command("ip", "link", "set", "near", "up")
    inside = ("nsenter", "--target", str(pid), "--net", "ip")
    command(*inside, "address", "add", f"{far}/24", "dev", "far")
    command(*inside, "link", "set", "far", "up")
    command(*inside, "link", "set", "lo", "up")
