"""A real Valkey as the supervisor starts it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from pathlib import Path

import pytest
import redis

from target_stack.cache.part import Valkey
from target_stack.cache.server import PROGRAM, ValkeyServer, find_installation
from tests.loopback import free_port


def test_the_installation_holds_the_server():
    assert os.access(find_installation() / PROGRAM, os.X_OK)


def test_the_server_listens_on_loopback_only_and_writes_down_what_it_is_told(tmp_path):
    command = ValkeyServer(tmp_path / "bin", tmp_path / "data", memory_mb=8).serve(21543)
    told = dict(zip(command[1::2], command[2::2], strict=True))
    assert command[0] == str(tmp_path / "bin" / PROGRAM)
    assert (told["--bind"], told["--port"], told["--appendonly"]) == ("127.0.0.1", "21543", "yes")
    assert (told["--maxmemory"], told["--maxmemory-policy"]) == ("8mb", "allkeys-lru")


@contextlib.contextmanager
def running(data: Path, port: int):
    """The server, ready; killed at the end."""
    server = ValkeyServer(find_installation(), data)
    part = Valkey("cache", server, None, data / "log")
    with subprocess.Popen(server.serve(port), stdout=subprocess.DEVNULL) as process:
        try:
            while not asyncio.run(part.serves(f"127.0.0.1:{port}")):
                assert process.poll() is None
            yield process, part
        finally:
            process.kill()


@pytest.mark.system
def test_what_was_kept_is_there_after_an_orderly_restart(tmp_path):
    port = free_port()
    with running(tmp_path, port) as (process, part), redis.Redis(port=port) as client:
        client.set("question", "answer", ex=100)
        process.send_signal(part.stop_signal)
        assert process.wait(10) == 0
    with running(tmp_path, port), redis.Redis(port=port) as client:
        assert client.get("question") == b"answer"
        assert 0 < client.ttl("question") <= 100


@pytest.mark.system
def test_a_frozen_server_does_not_serve(tmp_path):
    port = free_port()
    with running(tmp_path, port) as (process, part):
        process.send_signal(signal.SIGSTOP)
        assert not asyncio.run(part.serves(f"127.0.0.1:{port}"))
