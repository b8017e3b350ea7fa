"""The engine core: a process of its own that owns the scheduler and the clock of the simulated GPU.

It speaks JSON lines with the API server over one socket pair; all tokens of a step travel in one line. Freezing it
silences every stream while the API server still answers; killing it breaks every stream: as vLLM's two processes do.

    API ──► {"op": "add", "id", "model", "prompt", "sampling": {...}, "priority"}   {"op": "abort", "ids"}
            {"op": "abort_all"}
    API ◄── {"t", "out": [[id, piece, finish, stop_reason, first, last], ...], "tokens", "running", "waiting", ...}
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from target_stack import process
from target_stack.device.registers import Registers
from target_stack.engine import text
from target_stack.engine.config import EngineConfig
from target_stack.engine.gpu import Gpu
from target_stack.engine.kv_blocks import BlockPool, block_hashes
from target_stack.engine.scheduler import Limits, Produced, Scheduler, Sequence, Step

_READ_BYTES = 1 << 18
_HANG_LOOK_S = 0.02
_MEMORY_LOOK_S = 0.05


class Core:
    """Messages in, steps out; knows neither sockets nor clocks."""

    def __init__(self, config: EngineConfig, blocks: int | None = None) -> None:
        """Start with an empty cache of so many blocks, by default as many as the configuration wants."""
        self._config = config
        limits = Limits(
            max_num_seqs=config.max_num_seqs,
            max_num_batched_tokens=config.max_num_batched_tokens,
            policy=config.scheduling_policy,
            prefix_caching=config.enable_prefix_caching,
        )
        self._scheduler = Scheduler(limits, BlockPool(blocks or config.num_gpu_blocks, config.block_size))
        self._asked: dict[str, Mapping[str, Any]] = {}
        self._answers: dict[str, text.Answer] = {}
        self._preemptions = 0
        self._began = 0.0
        self._aborted: list[list[Any]] = []
        self.changed = False  # something left since the last report, so the gauges are stale

    def handle(self, message: Mapping[str, Any], now: float) -> None:
        """Take one message of the API server. Raises ValueError for an unknown one."""
        match message["op"]:
            case "add":
                self._add(message, now)
            case "abort":
                self._drop(self._scheduler.abort(message["ids"]))
            case "abort_all":
                gone = self._scheduler.abort_all()
                self._aborted += [[each.id, "", "abort", None, None, _last(each)] for each in gone]
                self._drop(gone)
            case other:
                raise ValueError(f"unknown message {other!r}")

    def begin(self, now: float) -> tuple[Step, float] | None:
        """The next step and how many seconds it takes; None when there is nothing to do."""
        step = self._scheduler.schedule(now)
        if step is None:
            return None
        self._preemptions += step.preempted
        for each in step.admitted:
            self._think(each)
        cost_s = self._config.cost.step_s(prefill_tokens=step.prefill_tokens, decoding=step.decoding)
        self._began = now
        return step, cost_s * self._config.slow_factor

    def withhold(self, blocks: int) -> None:
        """Do without so many blocks from now on: somebody else has the memory. Running requests give way."""
        self._preemptions += self._scheduler.withhold(blocks)

    def wakes_at(self, now: float) -> float | None:
        """When to look again without news: for a slow model id's next step, for memory that may come back."""
        return now + _MEMORY_LOOK_S if self._scheduler.starved else self._scheduler.wakes_at(now)

    def finish(self, step: Step, now: float) -> dict[str, Any]:
        """The report of a step that ran until `now`."""
        produced = self._scheduler.complete(step)
        for each in produced:
            each.sequence.ready_at = now + (each.sequence.pace - 1) * (now - self._began)
        out = [self._output(each, now) for each in produced]
        return self.report(now, out, step.tokens)

    def report(self, now: float, out: list[list[Any]], tokens: int = 0) -> dict[str, Any]:
        """The state of all gauges, with what came out since the last report."""
        scheduler = self._scheduler
        aborted, self._aborted, self.changed = self._aborted, [], False
        return {
            "t": now,
            "out": out + aborted,
            "tokens": tokens,
            "running": len(scheduler.running),
            "waiting": len(scheduler.waiting),
            "kv": scheduler.pool.usage,
            "queries": scheduler.queries,
            "hits": scheduler.hits,
            "preemptions": self._preemptions,
        }

    def _add(self, message: Mapping[str, Any], now: float) -> None:
        config, tokens = self._config, tuple(text.pieces(message["prompt"]))
        habits = config.habits(message["model"])
        prefill_s = config.cost.step_s(prefill_tokens=len(tokens), decoding=0)
        self._asked[message["id"]] = message
        self._scheduler.add(
            Sequence(
                id=message["id"],
                prompt_tokens=len(tokens),
                output_tokens=0,
                arrived=now,
                hashes=block_hashes(tokens, config.block_size, config.prefix_hash),
                tokens=tokens,
                priority=message["priority"],
                pace=habits.slow_factor,
                ready_at=now + (habits.slow_factor - 1) * prefill_s,
            )
        )

    def _think(self, sequence: Sequence) -> None:
        """Make up the whole answer when the prompt is read: it comes from what lies in the cache, right or wrong."""
        asked = self._asked.pop(sequence.id, None)
        if asked is None:  # preempted before: what was said stands
            return
        sampling = text.Sampling(**{**asked["sampling"], "stop": tuple(asked["sampling"]["stop"])})
        answer = text.answer(
            self._scheduler.prompt_in_cache(sequence),
            seed=self._config.seed if asked.get("seed") is None else asked["seed"],
            sampling=sampling,
            verbosity=self._config.habits(asked["model"]).verbosity,
        )
        self._answers[sequence.id] = answer
        sequence.output_tokens = len(answer.pieces)

    def _drop(self, gone: list[Sequence]) -> None:
        for each in gone:
            self._asked.pop(each.id, None)
            self._answers.pop(each.id, None)
        self.changed = self.changed or bool(gone)

    def _output(self, produced: Produced, now: float) -> list[Any]:
        sequence = produced.sequence
        answer = self._answers[sequence.id]
        piece = answer.pieces[produced.number - 1]
        first = _first(sequence, now) if produced.number == 1 else None
        if not produced.finished:
            return [sequence.id, piece, None, None, first, None]
        del self._answers[sequence.id]
        return [sequence.id, piece, answer.finish, answer.stop_reason, first, _last(sequence)]


def _first(sequence: Sequence, now: float) -> dict[str, float]:
    """What is known once the first token is out: seconds in the queue, seconds of prefill, cached prompt tokens."""
    started = sequence.arrived if sequence.scheduled_at is None else sequence.scheduled_at
    return {"queued_s": started - sequence.arrived, "prefill_s": now - started, "cached": sequence.cached_tokens}


def _last(sequence: Sequence) -> dict[str, int]:
    return {"preemptions": sequence.preemptions}


class _Wire:
    """JSON lines over a connected socket. Reading waits until a given moment, writing as long as the reader needs."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._rest = b""

    def send(self, message: Mapping[str, Any]) -> None:
        self._sock.sendall(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    def receive(self, until: float | None) -> list[Any]:
        """Whole messages that came; empty when `until` (CLOCK_MONOTONIC) passed first. Raises EOFError."""
        wait_s = None if until is None else max(0.0, until - time.monotonic())
        # select, not epoll: epoll rounds a wait up to whole milliseconds, which would be a tenth of a step.
        if not select.select([self._sock], [], [], wait_s)[0]:
            return []
        data = self._sock.recv(_READ_BYTES)
        if not data:
            raise EOFError
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [json.loads(line) for line in lines]


def run(config: EngineConfig, sock: socket.socket, parent: int) -> NoReturn:
    """Be the core process until the API server goes away. Raises EOFError then, and GpuFailed when the GPU does."""
    process.die_with_parent(parent)
    process.set_title(f"{config.name} core")
    for number in (signal.SIGTERM, signal.SIGINT):  # the API server decides when the engine ends
        signal.signal(number, signal.SIG_IGN)
    time.sleep(config.startup_delay_s)
    gpu = Gpu(config, Registers.at(Path(config.device)) if config.device else Registers.private())
    core, wire = Core(config, gpu.claim(os.getpid())), _Wire(sock)
    wire.send({"ready": True, "num_gpu_blocks": gpu.blocks})
    while True:
        _turn(core, wire, gpu)


def _turn(core: Core, wire: _Wire, gpu: Gpu) -> None:
    """One step in real time, or one wait for work."""
    now = time.monotonic()
    core.withhold(gpu.withheld)
    begun = core.begin(now)
    if begun is None:
        if core.changed:
            wire.send(core.report(now, []))
        _take(core, wire, until=core.wakes_at(now))
        return
    step, cost_s = begun
    ends = now + cost_s / gpu.speed
    _take(core, wire, until=ends)  # at least once, so that a step of no cost cannot lock messages out
    while time.monotonic() < ends:
        _take(core, wire, until=ends)
    _await_gpu(gpu)
    gpu.worked(cost_s)
    wire.send(core.finish(step, time.monotonic()))


def _await_gpu(gpu: Gpu) -> None:
    """The step is done when the device says so: a hung one never does, and nothing else happens here meanwhile."""
    began = time.monotonic()
    while gpu.hangs(time.monotonic() - began):
        time.sleep(_HANG_LOOK_S)


def _take(core: Core, wire: _Wire, *, until: float | None) -> None:
    for message in wire.receive(until):
        core.handle(message, time.monotonic())
