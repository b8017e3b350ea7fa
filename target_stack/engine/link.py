"""The API server's end of the socket pair: requests go to the core, tokens come back, its death is seen at once.

One `Reply` stands for one HTTP request with all its choices. Everything vLLM measures about a request is measured here,
with the core's step times, as vLLM's front end does.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

from target_stack.engine import errors
from target_stack.engine.config import EngineConfig
from target_stack.engine.delta import Delta
from target_stack.engine.metrics import Metrics
from target_stack.engine.requests import Call


class _Running:
    """What is known about one choice while it is made."""

    __slots__ = ("choice", "first_at", "generated", "last_at", "prompt_tokens", "reply", "timing")

    def __init__(self, reply: Reply, choice: int, prompt_tokens: int) -> None:
        self.reply = reply
        self.choice = choice
        self.prompt_tokens = prompt_tokens
        self.generated = 0
        self.first_at = 0.0
        self.last_at = 0.0
        self.timing: Mapping[str, float] = {"queued_s": 0.0, "prefill_s": 0.0, "cached": 0}


class Reply:
    """The tokens of one request as they come, for one reader."""

    def __init__(self, call: Call, arrived: float, request_id: str = "") -> None:
        """`arrived` in CLOCK_MONOTONIC seconds."""
        self.call = call
        self.request_id = request_id
        self.arrived = arrived
        self.generated_tokens = 0
        self.prefilled_tokens = 0  # of the prompts of all choices that have a first token
        self.kv: Mapping[str, Any] | None = None  # by which a peer may fetch the prompt
        self.ids: list[str] = []
        self._open = len(call.prompts) * call.n
        self._deltas: list[Delta] = []
        self._failure: errors.ApiError | None = None
        self._news = asyncio.Event()

    async def batches(self, idle_s: float = 0.0) -> AsyncIterator[list[Delta]]:
        """Groups of tokens until every choice has finished. Raises ApiError when the core dies first.

        With `idle_s`, an empty group after so many seconds of silence.
        """
        while True:
            try:
                await (asyncio.wait_for(self._news.wait(), idle_s) if idle_s > 0 else self._news.wait())
            except TimeoutError:
                yield []
                continue
            self._news.clear()
            deltas, self._deltas = self._deltas, []
            if deltas:
                yield deltas
            if self.done:
                return
            if self._failure:
                raise self._failure

    @property
    def outcome(self) -> str:
        """`error` for what the core could not make, else nothing: who serves it sees how it ends."""
        return "error" if self._failure else ""

    @property
    def done(self) -> bool:
        """Every choice has finished and been handed on."""
        return self._open == 0 and not self._deltas

    def feed(self, delta: Delta) -> None:
        """One more token."""
        self.generated_tokens += delta.finish != "abort"
        self._open -= delta.finish is not None
        self._deltas.append(delta)
        self._news.set()

    def fail(self, failure: errors.ApiError) -> None:
        """No more tokens will come."""
        self._failure = failure
        self._news.set()


class CoreLink(asyncio.Protocol):
    """The connection. `ready` and `died` become true once; `open` counts choices being made."""

    def __init__(self, metrics: Metrics, config: EngineConfig) -> None:
        """Not connected yet. The limits of the queue hold here, before the core sees a request."""
        self.ready = asyncio.Event()
        self.died = asyncio.Event()
        self._metrics = metrics
        self._config = config
        self._running: dict[str, _Running] = {}
        self._serial = 0
        self._rest = b""
        self._transport: asyncio.WriteTransport | None = None

    @property
    def open(self) -> int:
        """Choices that the core is making or has queued."""
        return len(self._running)

    @property
    def prefill_tokens(self) -> int:
        """Prompt tokens of all choices without a first token, whole prompts, as vLLM counts them."""
        return sum(each.prompt_tokens for each in self._running.values() if not each.generated)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by asyncio."""
        assert isinstance(transport, asyncio.WriteTransport)  # noqa: S101  narrows asyncio's declared type
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Called by asyncio: whole lines are reports."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            report = json.loads(line)
            if "ready" in report:
                self._metrics.loaded(self._config, report["num_gpu_blocks"])
                self.ready.set()
            else:
                self._take(report)

    def connection_lost(self, _error: Exception | None) -> None:
        """Called by asyncio: the core is gone, and with it every request."""
        self.died.set()
        gone, self._running = self._running, {}
        for each in gone.values():
            each.reply.fail(errors.engine_dead())

    def submit(self, call: Call, request_id: str = "") -> Reply:
        """Hand a request to the core; peers know what is kept of it by `request_id`. Raises ApiError when the core is
        dead or the queue full.
        """
        if self.died.is_set():
            raise errors.engine_dead()
        self._admit(len(call.prompts) * call.n)
        reply = Reply(call, time.monotonic(), request_id)
        for place, prompt in enumerate(call.prompts):
            for draw in range(call.n):
                self._add(reply, place * call.n + draw, prompt, draw)
        return reply

    def _admit(self, choices: int) -> None:
        most_requests, most_tokens = self._config.max_num_queued_reqs, self._config.max_num_queued_tokens
        if most_requests is not None and self.open + choices > most_requests:
            self._metrics.rejected["max_num_queued_reqs"].value += 1
            raise errors.queue_full()
        if most_tokens is not None and self.prefill_tokens >= most_tokens:
            self._metrics.rejected["max_num_queued_tokens"].value += 1
            raise errors.too_many_queued_tokens()

    def abort(self, reply: Reply) -> None:
        """Forget a request whose client is gone; as in vLLM this counts nowhere, its late tokens are ignored."""
        ids = [each for each in reply.ids if self._running.pop(each, None)]
        if ids:
            self._send({"op": "abort", "ids": ids})

    def abort_all(self) -> None:
        """End every request on the server's side: the core answers each with finish reason `abort`."""
        self._send({"op": "abort_all"})

    def _add(self, reply: Reply, choice: int, prompt: str, draw: int) -> None:
        call = reply.call
        self._serial += 1
        name = str(self._serial)
        self._running[name] = _Running(reply, choice, call.prompt_tokens[choice // call.n])
        reply.ids.append(name)
        sampling = {**vars(call.sampling), "draw": draw}
        self._send(
            {
                "op": "add",
                "id": name,
                "model": call.model,
                "prompt": prompt,
                "sampling": sampling,
                "priority": call.priority,
                "seed": call.seed,
                **({"kv": call.kv, "request_id": reply.request_id} if call.kv else {}),
            }
        )

    def _send(self, message: Mapping[str, Any]) -> None:
        if self._transport is not None and not self.died.is_set():
            self._transport.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    def _take(self, report: Mapping[str, Any]) -> None:
        self._metrics.step(report)
        now = report["t"]
        for name, piece, finish, stop_reason, first, last in report["out"]:
            running = self._running.get(name)
            if running is None:  # its client has left
                continue
            if finish == "error":
                self._fail(name, running)
                continue
            if finish != "abort":
                self._token(running, now, first)
            if finish is not None:
                del self._running[name]
                self._finished(running, finish, last)
            running.reply.feed(Delta(running.choice, piece, finish, stop_reason))

    def _fail(self, name: str, running: _Running) -> None:
        """The core could not serve this one: its prompt did not come from the peer that has it."""
        del self._running[name]
        self._metrics.finished["error"].value += 1
        running.reply.fail(errors.failed_request())

    def _token(self, running: _Running, now: float, first: Mapping[str, float] | None) -> None:
        metrics = self._metrics
        metrics.generation_tokens.value += 1
        running.generated += 1
        if first is None:
            metrics.gap_s.observe(now - running.last_at)
        else:
            running.timing, running.first_at = first, now
            running.reply.prefilled_tokens += running.prompt_tokens
            metrics.first_token_s.observe(now - running.reply.arrived)
            metrics.prefilled(running.prompt_tokens, int(first["cached"]), int(first.get("external", 0)))
        running.last_at = now

    def _finished(self, running: _Running, finish: str, last: Mapping[str, Any]) -> None:
        running.reply.kv = last.get("kv")
        metrics, timing, call = self._metrics, running.timing, running.reply.call
        metrics.finished[finish].value += 1
        decode_s = running.last_at - running.first_at
        metrics.e2e_s.observe(time.monotonic() - running.reply.arrived)
        metrics.queued_s.observe(timing["queued_s"])
        metrics.prefill_s.observe(timing["prefill_s"])
        metrics.decode_s.observe(decode_s)
        metrics.inference_s.observe(timing["prefill_s"] + decode_s)
        if running.generated > 1:
            metrics.per_token_s.observe(decode_s / (running.generated - 1))
        metrics.request_prompt_tokens.observe(running.prompt_tokens)
        metrics.request_generation_tokens.observe(running.generated)
        metrics.prefill_computed.observe(running.prompt_tokens - timing["cached"])
        metrics.request_preemptions.observe(last["preemptions"])
        metrics.request_max_generation.observe(running.generated)
        metrics.request_n.observe(call.n)
        metrics.request_max_tokens.observe(call.sampling.max_tokens)
