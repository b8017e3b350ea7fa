"""A modelled engine: continuous batching in virtual time, in the shape of the session that the gateway's client uses.

The gateway's real `EngineClient` talks to it, so its time limits, its parser and its judgement of a stream are the
ones that run in production; only the sockets are missing.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Literal

import aiohttp

State = Literal["up", "down", "frozen", "refusing"]


@dataclass(frozen=True)
class Speed:
    """What the engine can do. The defaults give about 24 answers of 16 tokens a second, a first token after 40 ms."""

    slots: int = 8
    prefill_s_per_token: float = 0.0005
    step_s: float = 0.016
    step_s_per_sequence: float = 0.0005

    def answers_per_s(self, prompt_tokens: int, max_tokens: int) -> float:
        """Capacity with all slots full of such answers."""
        each_s = max_tokens * (self.step_s + self.slots * self.step_s_per_sequence) / self.slots
        return 1 / (each_s + prompt_tokens * self.prefill_s_per_token)


@dataclass(frozen=True)
class Asked:
    """One chat call as it came over the wire, also one that was refused: `at` in loop time, `work` in tokens."""

    at: float
    work: int


class Reply:
    """The part of aiohttp's response that the client reads."""

    status = 200
    headers: Mapping[str, str] = {}

    def __init__(self, engine: ModelledEngine, prompt_tokens: int, max_tokens: int) -> None:
        self.content = self
        self.prompt_tokens = prompt_tokens
        self.left = max_tokens
        self._engine = engine
        self._out = b""
        self._ended = self._broken = False
        self._told = asyncio.Event()

    async def readany(self) -> bytes:
        """The next bytes, or none at the end. Raises aiohttp.ClientPayloadError when the engine dies."""
        while not (self._out or self._ended):
            self._told.clear()
            await self._told.wait()
        if self._broken:
            raise aiohttp.ClientPayloadError("cut")
        out, self._out = self._out, b""
        return out

    def say(self, data: bytes, *, last: bool = False) -> None:
        """The engine writes."""
        self._out += data
        self._ended |= last
        self._told.set()

    def cut(self) -> None:
        """The engine is gone."""
        self._ended = self._broken = True
        self._told.set()

    def release(self) -> None:
        """Nothing is kept open here."""

    def close(self) -> None:
        """The client hangs up: whatever is not done yet is dropped."""
        self._engine.drop(self)


class Refusal:
    """An answer that is no stream."""

    def __init__(self, status: int, headers: Mapping[str, str], page: str = "") -> None:
        self.status, self.headers, self.page = status, headers, page

    async def text(self) -> str:
        """A page of metrics."""
        return self.page

    async def json(self, content_type: str | None) -> Any:
        return {"error": {"message": "engine says no", "type": "Refused", "param": None, "code": self.status}}

    def release(self) -> None:
        """Nothing is kept open here."""

    def close(self) -> None:
        """Nothing is kept open here."""


class ModelledEngine:
    """Serves waiting requests in order, `slots` at once, one token each a step; and breaks when it is told to."""

    def __init__(self, name: str, speed: Speed = Speed()) -> None:
        self.name, self.speed = name, speed
        self.state: State = "up"
        self.slow = 1.0
        self.refusal = Refusal(503, {})
        self.asked: list[Asked] = []
        self.tokens_made = 0
        self.running: list[Reply] = []
        self.waiting: list[Reply] = []
        self._page = ""
        self._stepping: asyncio.TimerHandle | None = None

    # What happens to it.

    def kill(self) -> None:
        """Its process is gone: open answers are cut, connections refused."""
        self.state = "down"
        self._stop()
        for reply in (*self.running, *self.waiting):
            reply.cut()
        self.running, self.waiting = [], []

    def freeze(self) -> None:
        """Accepts everything, says it is well, computes nothing."""
        self.state = "frozen"
        self._stop()

    def refuse(self, status: int = 503, headers: Mapping[str, str] | None = None) -> None:
        """Answers every chat with this status."""
        self.state, self.refusal = "refusing", Refusal(status, headers or {})

    def heal(self) -> None:
        """Well again, with whatever waited."""
        self.state = "up"
        self._go_on()

    # What the gateway's client does with it, in the shape of aiohttp.ClientSession.

    async def post(self, url: str, *, data: bytes, headers: Mapping[str, str], timeout: Any) -> Reply | Refusal:
        """A chat call."""
        body = json.loads(data)
        text = "".join(str(message["content"]) for message in body["messages"])
        prompt, most = len(text) // 4, int(body.get("max_tokens") or 16)
        if text != "ping":
            self.asked.append(Asked(asyncio.get_running_loop().time(), prompt + most))
        if self.state == "down":
            raise aiohttp.ClientConnectionError("refused")
        if self.state == "refusing":
            return self.refusal
        reply = Reply(self, prompt, most)
        self.waiting.append(reply)
        self._go_on()
        return reply

    @asynccontextmanager
    async def get(self, url: str) -> AsyncIterator[Refusal]:
        """Liveness and gauges: a frozen engine passes the one and repeats the other."""
        if self.state == "down":
            raise aiohttp.ClientConnectionError("refused")
        if self.state != "frozen":
            gauges = (("running", len(self.running)), ("waiting", len(self.waiting)))
            self._page = "".join(f'vllm:num_requests_{name}{{engine="0"}} {value}.0\n' for name, value in gauges)
        yield Refusal(200, {}, self._page)

    # One step after the other.

    def drop(self, reply: Reply) -> None:
        """Its caller went away."""
        for place in (self.running, self.waiting):
            if reply in place:
                place.remove(reply)

    def _go_on(self) -> None:
        if self._stepping is None and self.state == "up" and (self.running or self.waiting):
            fresh = self.waiting[: self.speed.slots - len(self.running)]
            del self.waiting[: len(fresh)]
            self.running += fresh
            decode_s = self.speed.step_s + len(self.running) * self.speed.step_s_per_sequence
            prefill_s = sum(reply.prompt_tokens for reply in fresh) * self.speed.prefill_s_per_token
            after_s = self.slow * (decode_s + prefill_s)
            self._stepping = asyncio.get_running_loop().call_later(after_s, self._step, list(self.running))

    def _step(self, computed: list[Reply]) -> None:
        self._stepping = None
        for reply in [reply for reply in computed if reply in self.running]:
            self.tokens_made += 1
            reply.left -= 1
            reply.say(TOKEN if reply.left else LAST, last=not reply.left)
            if not reply.left:
                self.running.remove(reply)
        self._go_on()

    def _stop(self) -> None:
        if self._stepping is not None:
            self._stepping.cancel()
            self._stepping = None


def _frame(delta: Mapping[str, str], finish_reason: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return b"data: " + json.dumps({"id": "chatcmpl-1", "model": "modelled", "choices": [choice]}).encode() + b"\n\n"


TOKEN = _frame({"content": "a "}, None)
LAST = _frame({"content": "end"}, "stop") + b"data: [DONE]\n\n"
Action = Callable[[], None]
