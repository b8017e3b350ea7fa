"""Captures of the real server, and real engines on loopback."""

from __future__ import annotations

import http.client
import json
import multiprocessing
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import pytest

from target_stack.engine import main
from tests.loopback import free_port

_CAPTURES = Path(__file__).parents[3] / "fixtures" / "captures" / "vllm_0.32"
_PATIENCE_S = 20.0


@pytest.fixture
def capture() -> Callable[[str], str]:
    """The text of a capture; of one with headers, its body."""

    def read(name: str) -> str:
        text = (_CAPTURES / name).read_bytes().decode()
        return text.partition("\r\n\r\n")[2] if text.startswith("HTTP/") else text

    return read


@dataclass
class Engine:
    """A running engine as its clients and its operating system see it."""

    process: ForkServerProcess
    port: int
    connections: list[http.client.HTTPConnection] = field(default_factory=list)

    @property
    def core(self) -> int:
        pid = self.process.pid
        return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])

    def exit_status(self, within_s: float = 5.0) -> int | None:
        """Wait for the end of the API server; None when it does not come."""
        self.process.join(within_s)
        return self.process.exitcode

    def send(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> http.client.HTTPConnection:
        """Send a request and do not wait; closing the connection is hanging up."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_PATIENCE_S)
        self.connections.append(connection)
        payload = None if body is None else json.dumps(body)
        connection.request(method, path, payload, {"content-type": "application/json", **(headers or {})})
        return connection

    def call(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, str]:
        """Status and text of a whole reply."""
        connection = self.send(method, path, body, headers)
        reply = connection.getresponse()
        text = reply.read().decode()
        connection.close()
        return reply.status, text

    def send_chat(self, max_tokens: int, *, stream: bool = True, words: str = "hello") -> http.client.HTTPConnection:
        """Ask for a chat that is always exactly `max_tokens` long."""
        body = {
            "messages": [{"role": "user", "content": words}],
            "max_tokens": max_tokens,
            "ignore_eos": True,
            "stream": stream,
        }
        return self.send("POST", "/v1/chat/completions", body)

    def chat(self, max_tokens: int) -> http.client.HTTPResponse:
        """The open stream of such a chat."""
        return self.send_chat(max_tokens).getresponse()

    def series(self, name: str) -> float:
        """The value of one series; labels as a plain substring after the name."""
        _, text = self.call("GET", "/metrics")
        return next(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(f"vllm:{name}"))

    def until(self, name: str, value: float, within_s: float = 5.0) -> None:
        """Wait until a series has a value. Raises AssertionError."""
        deadline = time.monotonic() + within_s
        while (found := self.series(name)) != value:
            assert time.monotonic() < deadline, f"{name} is {found}, not {value}"
            time.sleep(0.01)


def frames(text: str) -> list[str]:
    return [frame.strip().removeprefix("data: ") for frame in text.split("\n\n") if frame.strip()]


@pytest.fixture
def split_frames() -> Callable[[str], list[str]]:
    """The data of the frames of a stream."""
    return frames


def _wait_ready(engine: Engine) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        assert engine.process.is_alive(), "the engine ended while starting"
        try:
            if engine.call("GET", "/health")[0] == 200:
                return
        except OSError:
            time.sleep(0.02)
    raise AssertionError("the engine did not become ready")


@pytest.fixture
def start_engine() -> Iterator[Callable[..., Engine]]:
    """Start an engine with some settings, forked as the supervisor does it; nothing of it survives the test."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["target_stack.engine.main"])
    started: list[Engine] = []

    def start(*, wait: bool = True, **settings: Any) -> Engine:
        port = free_port()
        config = {"name": "engine-t", "listen": f"127.0.0.1:{port}", "model": "tiny", **settings}
        engine = Engine(context.Process(target=main, args=(config,)), port)
        engine.process.start()
        started.append(engine)
        if wait:
            _wait_ready(engine)
        return engine

    yield start
    for engine in started:
        engine.process.kill()
        engine.process.join(_PATIENCE_S)
        for connection in engine.connections:
            connection.close()
