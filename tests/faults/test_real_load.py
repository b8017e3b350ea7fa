"""Strangers' traffic, sent by real saboteurs to a small front door that counts who comes."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from itertools import count

import pytest

from chaos.adapters.host import real_host
from chaos.faults.fault import Fault
from chaos.faults.grips.sightings import look_until_seen
from chaos.faults.load_burst import LoadBurst
from chaos.faults.load_disconnects import LoadDisconnects
from chaos.faults.load_long_prompts import LoadLongPrompts
from chaos.faults.load_retry_storm import LoadRetryStorm
from chaos.faults.load_surge import LoadSurge
from chaos.inventory import Target
from chaos.testing.conformance import check_fault
from chaos.units import Rate
from tests.faults.machine import Server, called, counted

pytestmark = pytest.mark.system

FAULTS: tuple[Fault, ...] = (
    LoadBurst(size=10),
    LoadDisconnects(rate=Rate(10)),
    LoadLongPrompts(rate=Rate(10), words=200),
    LoadRetryStorm(rate=Rate(10)),
    LoadSurge(rate=Rate(10)),
)


class FrontDoor(BaseHTTPRequestHandler):
    """Chat, and a count of who has come."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    came = count(1)
    last = 0
    longest = 0

    def do_GET(self) -> None:
        self._send(f'gateway_requests_total{{route="chat",outcome="ok"}} {FrontDoor.last}\n'.encode())

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        FrontDoor.last = next(FrontDoor.came)
        FrontDoor.longest = max(FrontDoor.longest, len(asked["messages"][0]["content"].split()))
        self._send(counted(1) + called("{}") + b"data: [DONE]\n\n")

    def _send(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture(scope="module")
def door() -> Iterator[Target]:
    server = Server(("127.0.0.1", 0), FrontDoor)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield Target("gateway", "gateway", None, (), f"127.0.0.1:{server.server_address[1]}")
    server.shutdown()
    server.server_close()


@pytest.mark.timeout(120)  # every look takes a second, and each saboteur loads the whole driver
def test_strangers_keep_the_contract_of_faults(door: Target) -> None:
    """All kinds have the verbs of one base, so one is cut off at every call, and the others live one life."""

    async def main() -> None:
        async with real_host() as host:
            await check_fault(LoadBurst(size=10), (door,), host, within_s=20.0)

    asyncio.run(main())


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.kind)
def test_strangers_come_for_as_long_as_their_warrant_is_there(fault: Fault, door: Target) -> None:
    async def main() -> None:
        async with real_host() as host:
            undo = await fault.prepare((door,), host)
            before = await fault.confirm((door,), undo, host)
            await fault.inject((door,), undo, host)
            seen = await look_until_seen(lambda: fault.confirm((door,), undo, host), host.clock, within_s=20.0)
            await fault.revert(undo, host)
            gone = await look_until_seen(lambda: fault.confirm_gone((door,), undo, host), host.clock, within_s=5.0)
            assert (False, True, True) == (before.seen, seen.seen, gone.seen), (before.what, seen.what, gone.what)

    asyncio.run(main())
    if isinstance(fault, LoadLongPrompts):
        assert FrontDoor.longest == 200
