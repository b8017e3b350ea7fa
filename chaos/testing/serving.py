"""HTTP on the addresses of an in-memory stack: a ping, a model's name, a token stream, with or without the proxy.

The toxics that know HTTP act here as the real proxy's do on a request that names them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from email.utils import formatdate
from typing import Any
from urllib.parse import parse_qs, urlsplit

from chaos.ports import HttpReply
from chaos.testing.crowd import FakeCrowd
from chaos.testing.devices import FakeDevices
from chaos.testing.harmed import BODIES, DONE, call, event, harmed, late_s, lost
from chaos.testing.kv import FakeReferences
from chaos.testing.stack import FakeListener, FakeProxy, FakeSupervisor, FakeTarget, ProcessTable, reply
from chaos.testing.tampered import Tampered
from chaos.testing.tools import Asked, FakeTools

MODEL = "brownout-chat"
TOKEN_S = 0.01
SETTINGS = {"model": MODEL, "max_model_len": 4096, "num_gpu_blocks": 512, "enable_prefix_caching": True}
_CACHE_INFO = (
    'vllm:cache_config_info{{block_size="16",engine="0",num_gpu_blocks="{num_gpu_blocks}",'
    'enable_prefix_caching="{enable_prefix_caching}"}} 1.0\n'
)


def _configured(owner: FakeTarget) -> Mapping[str, Any]:
    return {**SETTINGS, **owner.settings}


class FakeServing:
    """Answers for every live target."""

    def __init__(
        self,
        supervisor: FakeSupervisor,
        processes: ProcessTable,
        proxy: FakeProxy,
        devices: FakeDevices,
        tampered: Tampered,
        *,
        crowd: FakeCrowd,
    ) -> None:
        """Addresses are looked up at each call."""
        self._supervisor = supervisor
        self._processes = processes
        self._proxy = proxy
        self._devices = devices
        self._tampered = tampered
        self._crowd = crowd
        self._scrapes = 0
        self._references = FakeReferences()
        self._tools = FakeTools()

    async def answer(
        self, method: str, url: str, body: Any, headers: Mapping[str, str], timeout_s: float
    ) -> HttpReply | None:
        """The reply, or None when the address is nobody's."""
        parts = urlsplit(url)
        listener = self._proxy.at(parts.netloc)
        owner = self._supervisor.at(listener.upstream if listener else parts.netloc)
        if owner is None:
            return None
        if listener and (self._proxy.absent or not listener.enabled):
            return lost("refused: nobody listens")
        if not self._supervisor.alive(owner):
            return lost("broken: closed without an answer" if listener else "refused: nobody listens")
        if listener and (gone := await self._ended(listener, timeout_s)):
            return gone
        toxic = self._acting(listener, parse_qs(parts.query).get("brownout-observer", [""])[0]) if listener else None
        asked = Asked(f"{method} {parts.path}", body, headers, timeout_s)
        return await self._serve(owner, asked, toxic)

    async def _serve(self, owner: FakeTarget, asked: Asked, toxic: Mapping[str, Any] | None) -> HttpReply:
        what, body, timeout_s = asked.what, asked.body, asked.timeout_s
        kind, attributes = (toxic["type"], toxic["attributes"]) if toxic else ("", {})
        if kind == "http_status":
            return reply(attributes["status"], {"error": {"code": attributes["status"]}})
        if kind == "http_body":
            return HttpReply(200, BODIES[attributes["body"]], {})
        await asyncio.sleep(min(late_s(kind, attributes), timeout_s))
        if late_s(kind, attributes) > timeout_s:
            return lost("timeout: late")
        if any(self._processes.state(each) == "T" for each in map(self._processes.identify, owner.record.pids) if each):
            await asyncio.sleep(timeout_s)
            return lost("timeout: frozen")
        if what in ("GET /ping", "GET /health"):
            now_s = self._tampered.told_s(owner)
            return HttpReply(200, "", {"date": formatdate(now_s, usegmt=True)})
        if what == "GET /storage":
            await asyncio.sleep(min(timeout_s, self._tampered.delay_s(owner)))
            return reply(503 if self._tampered.error(owner) else 200)
        if what == "GET /metrics":
            if kind == "http_page":
                return HttpReply(200, attributes["page"], {})
            self._scrapes += 1  # a true page moves
            came = self._crowd.page(owner.record.address, (owner.record.address, owner.record.via))
            settings = _CACHE_INFO.format(**_configured(owner))
            page = HttpReply(200, f"{settings}{came}scrapes_total {self._scrapes}\n", {})
            return lost("broken: reset by peer") if kind == "http_reset_mid_body" else page
        if self._tools.knows(what):
            return self._tools.answer(owner.record.name, asked, kind, attributes)
        if what == "GET /v1/models":
            served = _configured(owner)
            return reply(200, {"data": [{"id": served["model"], "max_model_len": served["max_model_len"]}]})
        if what not in ("POST /v1/completions", "POST /v1/chat/completions"):
            return reply(404, {"error": f"no such route: {what}"})
        if self._devices.lost(owner.record.name):
            return reply(500, {"error": {"code": 500}})
        if self._devices.hung(owner.record.name):
            await asyncio.sleep(timeout_s)
            return lost("timeout: the GPU hangs")
        if "kv_transfer_params" in body:
            return self._references.answer(owner.record.name, body, toxic)
        tokens = int(body["max_tokens"])
        events = (
            [call('{"city": '), call('"Reykjavik"}')] if "tools" in body else [event({"n": n}) for n in range(tokens)]
        )
        if kind == "sse_stall":
            await asyncio.sleep(timeout_s)
            return lost("timeout: silence")
        await asyncio.sleep(min(timeout_s, len(events) * TOKEN_S * self._devices.slowness(owner.record.name)))
        return harmed([*events, DONE], kind, attributes)

    async def _ended(self, listener: FakeListener, timeout_s: float) -> HttpReply | None:
        """What toxics that know nothing of HTTP make of a call, where that is its end."""
        self._proxy.touch(listener)
        if listener.of("timeout"):
            await asyncio.sleep(timeout_s)
            return lost("timeout: swallowed")
        return lost("broken: reset by peer") if listener.of("reset_peer") else None

    def _acting(self, listener: FakeListener, observed: str) -> Mapping[str, Any] | None:
        """The toxic that an observer names, which then counts a hit."""
        found = next((toxic for toxic in listener.toxics if toxic["name"] == observed), None)
        if found:
            self._proxy.hits[listener.name, observed] += 1
        return found
