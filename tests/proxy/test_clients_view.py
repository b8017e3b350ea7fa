"""What clients see of each toxic on requests, through a real proxy on loopback; docs/stream_toxics.md is this table."""

from __future__ import annotations

import asyncio
import http.server
import itertools
import json
import os
import re
import socket
import struct
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import aiohttp
import httpx
import openai
import pytest

from chaos.load.schedule import HttpRequest
from chaos.load.stopwatch import Question, Stopwatch
from chaos.load.transport import HttpTransport
from tests.proxy.peers import Admin, Client, Edge

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 1.0


def chunk(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    whole = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return f"data: {json.dumps(whole)}\n\n".encode()


def call_chunk(arguments: str) -> bytes:
    function = {"name": "refund", "arguments": arguments}
    return chunk({"tool_calls": [{"index": 0, "id": "t", "type": "function", "function": function}]})


DONE = b"data: [DONE]\n\n"
EVENTS = [*(chunk({"content": word}) for word in ("one ", "two ", "three ", "four")), chunk({}, "stop"), DONE]
CALL = [*(call_chunk(piece) for piece in ('{"order"', ': "A-17"', ', "cents": 990}')), chunk({}, "tool_calls"), DONE]
SETTINGS: dict[str, dict[str, int | str]] = {
    "sse_cut (close)": {"after_events": 2},
    "sse_cut (reset)": {"after_events": 2, "ending": "reset"},
    "sse_cut (clean)": {"after_events": 2, "ending": "clean"},
    "sse_stall": {"after_events": 2},
    "sse_slow_first": {"delay": 200},
    "sse_error_frame": {"after_events": 2},
    "sse_drop_done": {},
    "sse_garble": {"after_events": 2},
    "sse_duplicate": {"after_events": 2},
    "sse_truncate_tool_call": {"keep_chars": 12},
    "http_status": {"status": 429, "retry_after": 3},
    "http_delay": {"delay": 200},
    "http_body (empty)": {"body": "empty"},
    "http_body (html)": {"body": "html"},
    "http_body (broken_json)": {"body": "broken_json"},
    "http_reset_mid_body": {"after_bytes": 20},
}


class Handler(http.server.BaseHTTPRequestHandler):
    """`/stream` and `/call` send events in chunks; all else is a short answer. Connections are kept."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(200)
        events = next(
            (events for path, events in (("/stream", EVENTS), ("/call", CALL)) if self.path.startswith(path)), None
        )
        if events:
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for event in events:
                self.wfile.write(b"%x\r\n%b\r\n" % (len(event), event))
            self.wfile.write(b"0\r\n\r\n")
        else:
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Quiet."""


class Server(http.server.ThreadingHTTPServer):
    """Connections that break are what the tests are about."""

    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture(scope="module")
def engine() -> Iterator[str]:
    server = Server(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def edge(admin: Admin, engine: str) -> Iterator[Edge]:
    edge = admin.proxy(engine)
    yield edge
    edge.delete()


def with_httpx(port: int, path: str) -> str:
    """Events that came, and the exception or the status that a user of httpx sees."""
    body = b""
    try:
        with (
            httpx.Client(trust_env=False, timeout=TIMEOUT_S) as client,
            client.stream("GET", _url(port, path)) as reply,
        ):
            for piece in reply.iter_raw():
                body += piece
            how = f"{reply.status_code}"
    except httpx.HTTPError as error:
        how = type(error).__name__
    return f"{body.count(b'data:')} events, {how}"


async def with_aiohttp(port: int, path: str) -> str:
    """The same for aiohttp, which the bundled gateway uses."""
    body = b""
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_S)
    try:
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(_url(port, path)) as reply:
            async for piece in reply.content.iter_any():
                body += piece
            how = f"{reply.status}"
    except (aiohttp.ClientError, TimeoutError) as error:
        how = type(error).__name__
    return f"{body.count(b'data:')} events, {how}"


def with_openai(port: int, path: str) -> str:
    """Chunks that came, and the exception or the finish reason that a user of OpenAI's SDK sees."""
    chunks, how = 0, "no finish reason"
    url = _url(port, path)
    with openai.OpenAI(base_url=url, api_key="k", max_retries=0, timeout=TIMEOUT_S) as client:
        try:
            messages: Any = [{"role": "user", "content": "?"}]
            for each in client.chat.completions.create(model="m", messages=messages, stream=True):
                chunks += 1
                how = each.choices[0].finish_reason or how
        except Exception as error:  # noqa: BLE001  whatever it is, a user sees it
            how = type(error).__name__
    return f"{chunks} chunks, {how}"


async def with_our_load(port: int, path: str) -> str:
    """What the load driver makes of it."""
    clock = asyncio.get_running_loop().time
    watch = Stopwatch(Question(intended_s=clock()), clock())
    async with HttpTransport(f"http://127.0.0.1:{port}", clock) as transport:
        request = HttpRequest("POST", path, {"content-type": "application/json"}, b"{}")
        try:
            async with asyncio.timeout(TIMEOUT_S):
                await transport.exchange(request, watch)
        except TimeoutError:
            watch.timed_out(clock())
    outcome, why = watch.outcome()
    return f"{outcome}, {why}" if why else outcome


def _url(port: int, path: str = "/stream") -> str:
    return f"http://127.0.0.1:{port}{path}"


DOCUMENT = ROOT / "docs" / "stream_toxics.md"
ROW = re.compile(r"^\| `([^`]+)`([^|]*)\|((?: [^|]+ \|){4})", re.MULTILINE)


def _documented() -> dict[str, tuple[str, ...]]:
    rows = ROW.findall(DOCUMENT.read_text(encoding="utf-8"))
    return {
        f"{kind}{more.rstrip()}": tuple(cell.strip() for cell in cells.split("|")[:-1]) for kind, more, cells in rows
    }


def _rewrite(name: str, seen: tuple[str, ...]) -> None:
    """Put what was seen into the row of the document, for a reviewer."""

    def row(found: re.Match[str]) -> str:
        mine = found[1] + found[2].rstrip() == name
        return f"| `{found[1]}`{found[2]}| {' | '.join(seen)} |" if mine else found[0]

    DOCUMENT.write_text(ROW.sub(row, DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")


@pytest.mark.parametrize("name", list(SETTINGS))
def test_clients_see_what_the_documentation_says(edge: Edge, name: str) -> None:
    toxic = edge.add(name.partition(" ")[0], **SETTINGS[name])
    path = "/call" if "tool_call" in name else "/stream"
    seen = (
        with_httpx(edge.port, path),
        asyncio.run(with_aiohttp(edge.port, path)),
        with_openai(edge.port, path),
        asyncio.run(with_our_load(edge.port, path)),
    )
    if os.environ.get("BROWNOUT_REWRITE") == "1":
        _rewrite(name, seen)
    assert _documented()[name] == seen
    _, hits = edge.admin.call("GET", "/brownout/hits")
    counts = hits[edge.name]["toxics"][toxic]
    assert (counts["matched"], counts["requests"]) == (4, 4)


def test_a_kept_connection_is_harmed_from_its_next_request_on_and_serves_on_after_the_removal(edge: Edge) -> None:
    with httpx.Client(trust_env=False) as client:
        for _ in range(2):
            assert client.get(_url(edge.port)).text.encode() == b"".join(EVENTS)
            toxic = edge.add("http_status", status=503)
            assert client.get(_url(edge.port)).status_code == 503
            edge.remove(toxic)
    _, hits = edge.admin.call("GET", "/brownout/hits")
    assert hits[edge.name]["accepted"] == 1


def test_a_stalled_stream_goes_on_when_the_toxic_is_removed_and_its_connection_serves_again(edge: Edge) -> None:
    stall = edge.add("sse_stall", after_events=3)
    with httpx.Client(trust_env=False, timeout=10) as client:
        with client.stream("GET", _url(edge.port)) as reply:
            pieces = reply.iter_raw()
            came = b""
            while came.count(b"data:") < 3:
                came += next(pieces)
            threading.Timer(0.2, lambda: edge.remove(stall)).start()
            came += b"".join(pieces)
        assert came == b"".join(EVENTS)
        assert client.get(_url(edge.port)).text.encode() == b"".join(EVENTS)


def test_a_reset_reaches_a_connection_that_was_opened_before_the_toxic(edge: Edge) -> None:
    with socket.create_connection(("127.0.0.1", edge.port), timeout=5) as client:
        client.sendall(b"GET /ping HTTP/1.1\r\nHost: e\r\n\r\n")
        before = b""
        while not before.endswith(b"ok"):  # head and body may come in two pieces
            before += client.recv(4096)
        edge.add("http_reset_mid_body", after_bytes=0)
        client.sendall(b"GET /ping HTTP/1.1\r\nHost: e\r\n\r\n")
        assert Client(client).ending() == ("reset", len(before) - len(b"ok"))


def test_the_share_holds_over_requests_on_few_connections_within_three_sigma(edge: Edge) -> None:
    edge.add("http_status", toxicity=0.3, status=503)
    with httpx.Client(trust_env=False) as client:
        hit = sum(client.get(f"http://127.0.0.1:{edge.port}/ping").status_code == 503 for _ in range(300))
    assert abs(hit - 90) < 3 * (300 * 0.3 * 0.7) ** 0.5


def test_a_toxic_expires_by_itself(edge: Edge) -> None:
    url = f"http://127.0.0.1:{edge.port}/ping"
    with httpx.Client(trust_env=False) as client:
        assert client.get(url).status_code == 200
        body = {"type": "http_status", "name": "short", "expires_ms": 1000}
        edge.admin.call("POST", f"/proxies/{edge.name}/toxics", body)
        assert client.get(url).status_code == 503
        give_up = time.monotonic() + 10
        while client.get(url).status_code == 503:
            assert time.monotonic() < give_up
            time.sleep(0.05)


def test_bytes_that_are_no_http_pass_a_proxy_full_of_toxics_on_requests(admin: Admin) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        edge = admin.proxy(f"127.0.0.1:{listener.getsockname()[1]}")
        for kind in sorted({name.partition(" ")[0] for name in SETTINGS}):
            edge.add(kind)
        with edge.connect() as client, ThreadPoolExecutor(1) as pool:
            accepted = pool.submit(listener.accept)
            client.sock.sendall(struct.pack("!II", 8, 80877103))
            server, _ = accepted.result(timeout=5)
            with server:
                assert server.recv(64) == struct.pack("!II", 8, 80877103)
                server.sendall(b"N")
                assert client.read(1) == b"N"
        edge.delete()


def test_every_kind_is_in_the_documentation() -> None:
    assert list(SETTINGS) == list(itertools.islice(_documented(), len(SETTINGS)))
