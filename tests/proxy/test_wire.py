"""Every recorded exchange with a real Toxiproxy server, replayed against a fresh server of ours."""

from __future__ import annotations

import http.client
import json
import re
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.proxy.conftest import Start
from tests.proxy.peers import Upstream

RECORDING = Path(__file__).with_name("toxiproxy_wire.jsonl")
EXCHANGES = [
    line for line in map(json.loads, RECORDING.read_text(encoding="utf-8").splitlines()) if line["kind"] == "http"
]
_UPSTREAM_PORT = "26900"
_VERSION = re.compile(r'"version": "[^"]+"')
_COUNTER = re.compile(r"^(toxiproxy_\S+) \S+$", re.MULTILINE)


class Ports:
    """The ports of the recording (260xx, 269xx) stand for free ones here; all others were picked by a system."""

    def __init__(self) -> None:
        recorded = sorted(set(re.findall(r"\b26\d{3}\b", RECORDING.read_text(encoding="utf-8"))))
        holders = [_five_digit_listener() for _ in recorded]
        self._here = {port: str(holder.getsockname()[1]) for port, holder in zip(recorded, holders, strict=True)}
        for holder in holders:
            holder.close()

    def here(self, text: str) -> str:
        """The recorded text with our ports."""
        return re.sub(r"\b26\d{3}\b", lambda found: self._here[found[0]], text)

    def masked(self, text: str) -> str:
        """A text in which every port that is in neither set has no number."""
        known = set(self._here.values())
        return re.sub(r"(?<=127\.0\.0\.1:)\d+", lambda found: found[0] if found[0] in known else "PICKED", text)


def _five_digit_listener() -> socket.socket:
    return socket.create_server(("127.0.0.1", 0))


def _exchange(port: int, line: dict[str, Any], body: str | None) -> tuple[int, str, dict[str, str], bool, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.putrequest(line["method"], line["path"], skip_host="Host" in line["req_headers"])
        for name, value in line["req_headers"].items():
            connection.putheader(name, value)
        if body is not None:
            connection.putheader("Content-Length", str(len(body.encode())))
        connection.endheaders(None if body is None else body.encode())
        reply = connection.getresponse()
        headers = dict(reply.getheaders())
        text = reply.read().decode()
    finally:
        connection.close()
    headers.pop("Date")
    has_id = headers.pop("X-Toxiproxy-Request-Id", None) is not None
    return reply.status, reply.reason, headers, has_id, text


def _normal(ports: Ports, status: int, headers: dict[str, str], body: str) -> dict[str, Any]:
    """What must be equal. Content-Length is dropped only where a number of free length was masked."""
    masked = _COUNTER.sub(r"\1 N", _VERSION.sub('"version": "V"', ports.masked(body)))
    if _VERSION.search(body) or "PICKED" in masked or _COUNTER.search(body):
        headers = {name: value for name, value in headers.items() if name != "Content-Length"}
    return {"status": status, "headers": headers, "body": masked}


def _use_once(port: int) -> None:
    """Counters move only when a connection has ended: one small exchange, waited for to its end."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
        client.sendall(b"end")
        assert client.recv(1) == b""


@pytest.fixture(scope="module")
def differences(start_proxy: Start) -> dict[int, str]:
    """seq -> what differs. One server for the whole recording, in its order, as it was made."""
    server = start_proxy("--proxy-metrics", "--runtime-metrics")
    ports = Ports()
    found: dict[int, str] = {}
    with Upstream(int(ports.here(_UPSTREAM_PORT))):
        for line in EXCHANGES:
            if line["path"] == "/metrics":
                _use_once(int(ports.here("26001")))
            body = line["req_body"] and ports.here(line["req_body"])
            status, reason, headers, has_id, text = _exchange(server.port, line, line["req_body"] and body)
            if line["path"] == "/metrics":
                text = "\n".join(row for row in text.splitlines() if "toxiproxy" in row)  # as it was recorded
            ours = _normal(ports, status, headers, text)
            theirs = _normal(ports, line["status"], line["resp_headers"], ports.here(line["resp_body"]))
            if "reason" in line:
                ours |= {"reason": reason, "request_id": has_id}
                theirs |= {"reason": line["reason"], "request_id": line["has_request_id_header"]}
            if ours != theirs:
                found[line["seq"]] = f"{line['method']} {line['path']} {body}\n  ours   {ours}\n  theirs {theirs}"
    return found


@pytest.mark.system
def test_every_recorded_exchange_is_repeated_without_a_difference(differences: dict[int, str]) -> None:
    """293 HTTP exchanges: equal but for ports, counters, version and request ids."""
    assert len(EXCHANGES) == 293
    assert differences == {}, "\n".join(differences.values())
