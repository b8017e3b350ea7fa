"""The process around the core: the clock of the simulated GPU, and the lines to the API server and to the worker.

It speaks JSON lines over socket pairs. Freezing it silences every stream while the API server still answers; killing it
breaks every stream: as vLLM's two processes do. An engine with a KV connector has a third, the worker, which the core
waits for in every step: frozen it stops the engine, and when it dies the core goes with it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from target_stack import process
from target_stack.device.registers import Registers
from target_stack.engine import worker
from target_stack.engine.config import EngineConfig
from target_stack.engine.core import Core
from target_stack.engine.gpu import Gpu
from target_stack.engine.kv_transfer import KvTransfer

_READ_BYTES = 1 << 18
_HANG_LOOK_S = 0.02


class WorkerDied(Exception):
    """The engine cannot go on without its worker."""


class _Line:
    """JSON lines over a connected socket. `over` is raised when the other side has gone."""

    def __init__(self, sock: socket.socket, over: type[Exception]) -> None:
        self._sock = sock
        self._over = over
        self._rest = b""

    def fileno(self) -> int:
        return self._sock.fileno()

    def send(self, message: Mapping[str, Any]) -> None:
        self._sock.sendall(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    def receive(self) -> list[Any]:
        """Whole messages of what is there to be read."""
        data = self._sock.recv(_READ_BYTES)
        if not data:
            raise self._over
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [json.loads(line) for line in lines]


def _receive(lines: Sequence[_Line], until: float | None) -> list[Any]:
    """Whole messages from any of them; empty when `until` (CLOCK_MONOTONIC) passed first."""
    wait_s = None if until is None else max(0.0, until - time.monotonic())
    # select, not epoll: epoll rounds a wait up to whole milliseconds, which would be a tenth of a step.
    return [message for line in select.select(lines, [], [], wait_s)[0] for message in line.receive()]


def run(config: EngineConfig, sock: socket.socket, parent: int) -> NoReturn:
    """Be the core process until the API server goes away. Raises EOFError then, GpuFailed when the GPU does, and
    WorkerDied when the worker does.
    """
    process.die_with_parent(parent)
    process.set_title(f"{config.name} core")
    for number in (signal.SIGTERM, signal.SIGINT):  # the API server decides when the engine ends
        signal.signal(number, signal.SIG_IGN)
    engine_id = uuid.uuid4().hex
    hands = _fork_worker(config, config.kv_transfer, engine_id, sock) if config.kv_transfer else None
    time.sleep(config.startup_delay_s)
    gpu = Gpu(config, Registers.at(Path(config.device)) if config.device else Registers.private())
    core, api = Core(config, gpu.claim(os.getpid()), engine_id), _Line(sock, EOFError)
    if hands is not None:
        _receive([hands], None)  # it listens
    api.send({"ready": True, "num_gpu_blocks": gpu.blocks})
    engine = _Engine(core, gpu, api, hands)
    while True:
        engine.turn()


def _fork_worker(config: EngineConfig, settings: KvTransfer, engine_id: str, api: socket.socket) -> _Line:
    core, (ours, theirs) = os.getpid(), socket.socketpair()
    if not os.fork():
        ours.close()
        api.close()
        process.run_as_child(
            lambda: worker.run(config, settings, engine_id, theirs, core), over=EOFError, what="the engine worker"
        )
    theirs.close()
    return _Line(ours, WorkerDied)


class _Engine:
    """The loop around the core. Without `hands` there is no worker."""

    def __init__(self, core: Core, gpu: Gpu, api: _Line, hands: _Line | None) -> None:
        self._core = core
        self._gpu = gpu
        self._api = api
        self._hands = hands
        self._lines = [api] if hands is None else [api, hands]
        self._working = False

    def turn(self) -> None:
        """One step in real time, or one wait for work."""
        core, gpu, now = self._core, self._gpu, time.monotonic()
        core.withhold(gpu.withheld)
        begun = core.begin(now)
        self._order(core.orders())
        if begun is None:
            if core.changed:
                self._api.send(core.report(now, []))
            self._take(until=core.wakes_at(now))
            return
        step, cost_s = begun
        ends = now + cost_s / gpu.speed
        self._order([{"op": "step"}])
        self._working = self._hands is not None
        self._take(until=ends)  # at least once, so that a step of no cost cannot lock messages out
        while time.monotonic() < ends:
            self._take(until=ends)
        self._await_gpu()
        while self._working:
            self._take(until=None)
        gpu.worked(cost_s)
        report = core.finish(step, time.monotonic())
        self._order(core.orders())  # what a peer is told of must lie there before it comes
        self._api.send(report)

    def _await_gpu(self) -> None:
        """The step is done when the device says so: a hung one never does, and nothing else happens here meanwhile."""
        began = time.monotonic()
        while self._gpu.hangs(time.monotonic() - began):
            time.sleep(_HANG_LOOK_S)

    def _order(self, orders: Sequence[Mapping[str, Any]]) -> None:
        if self._hands is not None:
            for order in orders:
                self._hands.send(order)

    def _take(self, *, until: float | None) -> None:
        for message in _receive(self._lines, until):
            if message["op"] == "stepped":
                self._working = False
            else:
                self._core.handle(message, time.monotonic())
