"""The gate before a load whose right answer may be a refusal."""

from __future__ import annotations

import asyncio
import time

import pytest

from chaos.adapters.entropy import SeededEntropy
from chaos.load.prompts import Prompt
from chaos.load.schedule import plan_load
from chaos.run.traffic import users_are_served
from chaos.spec.model import Load
from chaos.units import Rate

pytestmark = pytest.mark.system


class OnceOnly:
    """A clock that runs out after one look, so that a closed gate is told at once."""

    def __init__(self):
        self._looks = 0

    def now(self):
        self._looks += 1
        return time.monotonic() + (0 if self._looks == 1 else 3600)

    async def sleep_until(self, when):
        raise AssertionError("looked again")


def gate(status, *, refused):
    """What the gate says of a front door that answers every call with this status."""
    asked = []

    async def answer(reader, writer):
        asked.append((await reader.readuntil(b"\r\n\r\n")).decode().lower())
        writer.write(f"HTTP/1.1 {status} X\r\ncontent-length: 8\r\nconnection: close\r\n\r\n".encode() + b'{"a": 1}')
        writer.close()

    async def main():
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        door = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        load = Load(name="calls", route="tools", rate=Rate(5))
        plan = plan_load(load, (Prompt("p", tool="t", refused=refused),), 1, SeededEntropy(1), 2.0)
        async with server:
            return await users_are_served((plan,), door, OnceOnly())

    return asyncio.run(main()), asked


@pytest.mark.parametrize(("status", "refused"), [(200, False), (403, True), (200, True)])
def test_a_load_that_is_answered_opens_the_gate_also_when_it_should_have_been_refused(status, refused):
    assert gate(status, refused=refused)[0] is None


@pytest.mark.parametrize(
    ("status", "refused", "why"),
    [(403, False, "calls: failed status_403"), (503, True, "calls: shed status_503"), (404, True, "calls: failed")],
)
def test_a_load_that_is_not_answered_keeps_it_closed(status, refused, why):
    assert gate(status, refused=refused)[0].startswith(why)


def test_the_gate_asks_under_a_key_that_no_run_uses():
    (first,) = gate(200, refused=False)[1]
    (second,) = gate(200, refused=False)[1]
    keys = [next(line for line in asked.split("\r\n") if "idempotency-key" in line) for asked in (first, second)]
    assert keys[0] != keys[1]
