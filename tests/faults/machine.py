"""A small model server with the routes that observers use, and the faults on edges, for tests with real proxies."""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from chaos.faults.fault import Fault
from chaos.faults.net_bandwidth import NetBandwidth
from chaos.faults.net_limit import NetLimit
from chaos.faults.net_reset import NetReset
from chaos.faults.net_slicer import NetSlicer
from chaos.faults.net_timeout import NetTimeout
from chaos.inventory import Target
from chaos.ports import Host
from chaos.units import Duration, Size

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

    scrapes = itertools.count()

    def do_GET(self) -> None:
        if self.path.startswith("/metrics"):
            self._send("text/plain; version=0.0.4", b"scrapes_total %d\n" % next(self.scrapes))
        else:
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


@contextlib.contextmanager
def serving_engine() -> Iterator[str]:
    """Its address, for as long as it serves."""
    server = Server(("127.0.0.1", 0), Engine)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


async def edge_to(host: Host, admin: str, engine: str, name: str) -> Target:
    wanted = {"name": name, "listen": "127.0.0.1:0", "upstream": engine}
    made = json.loads((await host.http.call("POST", f"http://{admin}/proxies", wanted)).body)
    handles = {"proxy": {"admin": admin, "name": name}}
    return Target(name, "engine", None, (), engine, made["listen"], handles=handles)
