"""The contract of the faults on requests and streams, with a real proxy process and a real HTTP server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from chaos.adapters.host import real_host
from chaos.faults.fault import Fault
from chaos.faults.http_body import HttpBody
from chaos.faults.http_delay import HttpDelay
from chaos.faults.http_reset import HttpReset
from chaos.faults.http_status import HttpStatus
from chaos.faults.net_bandwidth import NetBandwidth
from chaos.faults.net_limit import NetLimit
from chaos.faults.net_reset import NetReset
from chaos.faults.net_slicer import NetSlicer
from chaos.faults.net_timeout import NetTimeout
from chaos.faults.stream_cut import StreamCut
from chaos.faults.stream_drop_done import StreamDropDone
from chaos.faults.stream_duplicate import StreamDuplicate
from chaos.faults.stream_error_frame import StreamErrorFrame
from chaos.faults.stream_garble import StreamGarble
from chaos.faults.stream_slow_first import StreamSlowFirst
from chaos.faults.stream_stall import StreamStall
from chaos.faults.stream_truncate_tool_call import StreamTruncateToolCall
from chaos.inventory import Target
from chaos.ports import Host
from chaos.testing.conformance import check_fault
from chaos.units import Duration, Ratio, Size

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]


def counted(number: int) -> bytes:
    """One token."""
    return b'data: {"n": %d}\n\n' % number


def called(arguments: str) -> bytes:
    """A piece of a tool call."""
    call = {"index": 0, "function": {"arguments": arguments}}
    return b"data: " + json.dumps({"choices": [{"delta": {"tool_calls": [call]}}]}).encode() + b"\n\n"


class Engine(BaseHTTPRequestHandler):
    """The three routes of a model server that observers use."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # an answer leaves in one piece, as from any server that means it

    def do_GET(self) -> None:
        self._send("application/json", json.dumps({"data": [{"id": "tiny"}]}).encode())

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        assert asked["model"] == "tiny"
        pieces = (
            map(called, ('{"city": ', '"Reykjavik"}')) if "tools" in asked else map(counted, range(asked["max_tokens"]))
        )
        self._send("text/event-stream", b"".join(pieces) + b"data: [DONE]\n\n")

    def _send(self, content_type: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Quiet."""


class Server(ThreadingHTTPServer):
    """Connections that break are what the tests are about."""

    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture(scope="module")
def engine() -> Iterator[str]:
    server = Server(("127.0.0.1", 0), Engine)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def admin() -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "chaos.proxy", "--host", "127.0.0.1", "--port", str(port)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as proxy:
        for _ in range(500):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.02)
        yield f"127.0.0.1:{port}"
        proxy.kill()


async def _edge(host: Host, admin: str, engine: str, name: str) -> Target:
    wanted = {"name": name, "listen": "127.0.0.1:0", "upstream": engine}
    made = json.loads((await host.http.call("POST", f"http://{admin}/proxies", wanted)).body)
    handles = {"proxy": {"admin": admin, "name": name}}
    return Target(name, "engine", None, (), engine, made["listen"], handles=handles)


@pytest.mark.parametrize(
    "fault",
    [
        HttpReset(share=Ratio(0.1), path="/v1/"),
        HttpReset(after_bytes=3),
        HttpStatus(share=Ratio(0.1), path="/v1/"),
        HttpBody(share=Ratio(0.1), path="/v1/"),
        HttpBody(body="html"),
        HttpBody(body="broken_json"),
        HttpDelay(delay=Duration(0.2), share=Ratio(0.1)),
        StreamCut(share=Ratio(0.1)),
        StreamCut(after_events=0, ending="reset"),
        StreamCut(ending="clean"),
        StreamCut(ending="error"),
        StreamStall(share=Ratio(0.1)),
        StreamDropDone(share=Ratio(0.1)),
        StreamDuplicate(share=Ratio(0.1)),
        StreamDuplicate(after_events=0),
        StreamErrorFrame(share=Ratio(0.1)),
        StreamGarble(share=Ratio(0.1)),
        StreamSlowFirst(delay=Duration(0.2), share=Ratio(0.1)),
        StreamTruncateToolCall(share=Ratio(0.1)),
    ],
    ids=repr,
)
def test_a_fault_on_requests_keeps_its_contract_on_the_real_machine(fault: Fault, admin: str, engine: str) -> None:
    async def main() -> None:
        async with real_host() as host:
            target = await _edge(host, admin, engine, re.sub(r"\W+", "-", repr(fault)))
            await check_fault(fault, (target,), host, within_s=10.0)

    asyncio.run(main())


EDGES: tuple[Fault, ...] = (
    NetBandwidth(rate=Size(1000)),
    NetBandwidth(rate=Size(200_000), direction="upstream"),
    NetLimit(after=Size(0)),
    NetLimit(after=Size(20_000)),
    NetLimit(after=Size(10_000), direction="upstream"),
    NetReset(),
    NetReset(after=Duration(0.2), direction="upstream"),
    NetSlicer(),
    NetSlicer(piece=Size(1400), variation=Size(300), pause=Duration(0.005), direction="upstream"),
    NetTimeout(),
    NetTimeout(close_after=Duration(0.3), direction="upstream"),
)


@pytest.mark.parametrize("fault", EDGES, ids=repr)
def test_a_fault_on_an_edge_keeps_its_contract_on_the_real_machine(fault: Fault, admin: str, engine: str) -> None:
    async def main() -> None:
        async with real_host() as host:
            target = await _edge(host, admin, engine, re.sub(r"\W+", "-", repr(fault)))
            await check_fault(fault, (target,), host, within_s=10.0)

    asyncio.run(main())
