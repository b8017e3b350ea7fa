"""What the system tests talk with: the admin API as a client sees it, and an upstream that answers to short orders."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import socket
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Self

_names = itertools.count()


@dataclass
class Admin:
    """One proxy server."""

    host: str
    port: int
    pid: int

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and decoded body."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=10)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            reply = connection.getresponse()
            text = reply.read()
            return reply.status, json.loads(text) if text else None
        finally:
            connection.close()

    def proxy(self, upstream: str) -> Edge:
        """A new proxy in front of an address."""
        name = f"edge-{next(_names)}"
        status, made = self.call("POST", "/proxies", {"name": name, "listen": "127.0.0.1:0", "upstream": upstream})
        assert status == 201, made
        return Edge(self, name, int(made["listen"].rpartition(":")[2]))


@dataclass
class Edge:
    """One proxy, with its verbs."""

    admin: Admin
    name: str
    port: int

    def add(self, kind: str, stream: str = "downstream", toxicity: float = 1, **attributes: int | str) -> str:
        body = {"type": kind, "stream": stream, "toxicity": toxicity, "attributes": attributes}
        status, made = self.admin.call("POST", f"/proxies/{self.name}/toxics", body)
        assert status == 200, made
        return str(made["name"])

    def update(self, toxic: str, **attributes: int) -> None:
        status, answer = self.admin.call("POST", f"/proxies/{self.name}/toxics/{toxic}", {"attributes": attributes})
        assert status == 200, answer

    def remove(self, toxic: str) -> None:
        status, _ = self.admin.call("DELETE", f"/proxies/{self.name}/toxics/{toxic}")
        assert status == 204

    def set(self, **fields: Any) -> None:
        status, answer = self.admin.call("POST", f"/proxies/{self.name}", fields)
        assert status == 200, answer

    def delete(self) -> None:
        status, _ = self.admin.call("DELETE", f"/proxies/{self.name}")
        assert status == 204

    def connect(self) -> Client:
        return Client(socket.create_connection(("127.0.0.1", self.port), timeout=5))


@dataclass
class Client:
    """A connection through a proxy."""

    sock: socket.socket
    sizes: list[int] = field(default_factory=list)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.sock.close()

    def ask(self, order: bytes = b"x", size: int = 1) -> float:
        """Send, read so many bytes back; the seconds that it took."""
        started = time.monotonic()
        self.sock.sendall(order)
        assert len(self.read(size)) == size
        return time.monotonic() - started

    def read(self, size: int) -> bytes:
        """So many bytes, or fewer when the stream ends."""
        data = b""
        while len(data) < size and (piece := self.sock.recv(size - len(data))):
            self.sizes.append(len(piece))
            data += piece
        return data

    def ending(self, timeout_s: float = 5) -> tuple[str, int]:
        """How the stream ends ("eof", "reset", "open") and how many bytes came before."""
        self.sock.settimeout(timeout_s)
        total = 0
        try:
            while piece := self.sock.recv(1 << 20):
                total += len(piece)
        except ConnectionResetError:
            return "reset", total
        except TimeoutError:
            return "open", total
        return "eof", total

    def is_open(self, wait_s: float = 0.15) -> bool:
        return self.ending(wait_s)[0] == "open"


class Upstream:
    """Echoes what it gets, except orders, which are whole chunks.

    `give N` sends N bytes, `late` answers 100 ms after the end of the stream, `end` closes, `#...` is not answered.
    `endings` collects how each connection ended: eof or reset, and the bytes received.
    """

    def __init__(self, port: int = 0) -> None:
        self._listener = socket.create_server(("127.0.0.1", port), backlog=128)
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.endings: list[tuple[str, int]] = []
        self.ended = threading.Condition()

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def wait_for_ending(self, timeout_s: float = 5) -> tuple[str, int]:
        """How the first connection ended."""
        with self.ended:
            assert self.ended.wait_for(lambda: self.endings, timeout_s), "the upstream saw no end"
            return self.endings[0]

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=(self._listener.accept()[0],), daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        total, how = 0, "eof"
        try:
            total = self._obey(sock)
        except OSError:
            how = "reset"
        sock.close()
        with self.ended:
            self.endings.append((how, total))
            self.ended.notify_all()

    @staticmethod
    def _obey(sock: socket.socket) -> int:
        total, late = 0, False
        while data := sock.recv(65536):
            total += len(data)
            if data.startswith(b"give "):
                sock.sendall(bytes(int(data[5:])))
            elif data == b"end":
                return total
            elif data == b"late":
                late = True
            elif not data.startswith(b"#"):
                sock.sendall(data)
        if late:
            time.sleep(0.1)
            sock.sendall(b"late reply")
        return total
