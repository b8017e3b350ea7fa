"""HTTP/1.1 for the admin API without a socket: bytes in, requests out; responses in, bytes out.

The standard answers (wrong path, wrong method, bad request) are those of Go's server, which clients of Toxiproxy know.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import unquote_to_bytes

_MAX_HEAD = 1 << 20
_MAX_BODY = 64 << 20
_REQUEST_LINE = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+) (\S+) HTTP/1\.([01])")
_HEX_SIZE = re.compile(rb"\s*([0-9a-fA-F]{1,15})\s*(;.*)?")

_DATE = "%a, %d %b %Y %H:%M:%S GMT"

PLAIN = "text/plain; charset=utf-8"
JSON = "application/json"


class BadRequest(Exception):
    """Not HTTP, or more than is taken; the connection ends with `status`."""

    def __init__(self, status: int, detail: str = "") -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


@dataclass(frozen=True)
class Request:
    """One request. Header names are lower case; `path` is decoded and without its query."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes
    keep_alive: bool


@dataclass(frozen=True)
class Response:
    """One response. A content type of None sends no such header."""

    status: int
    body: str = ""
    content_type: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class _Head:
    method: str
    path: str
    headers: dict[str, str]
    keep_alive: bool


class Parser:
    """Collects bytes of one connection. `feed`, then take requests until there is none."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._head: _Head | None = None
        self._body = bytearray()

    @property
    def idle(self) -> bool:
        """Nothing of a request has come yet."""
        return not self._data and self._head is None

    @property
    def expects_continue(self) -> bool:
        """The client waits for leave to send its body."""
        return (
            self._head is not None and self._head.headers.get("expect", "").lower() == "100-continue" and not self._data
        )

    def feed(self, data: bytes) -> None:
        """More bytes."""
        self._data += data

    def next(self) -> Request | None:
        """The next whole request, or None if more bytes are needed. Raises BadRequest."""
        if self._head is None:
            self._head = self._read_head()
        head = self._head
        if head is None:
            return None
        chunked = head.headers.get("transfer-encoding", "").lower() == "chunked"
        if not (self._read_chunks() if chunked else self._read_sized(head)):
            return None
        request = Request(head.method, head.path, head.headers, bytes(self._body), head.keep_alive)
        self._head, self._body = None, bytearray()
        return request

    def _read_head(self) -> _Head | None:
        while self._data[:2] == b"\r\n":
            del self._data[:2]
        end = self._data.find(b"\r\n\r\n")
        if end < 0:
            if len(self._data) > _MAX_HEAD:
                raise BadRequest(431)
            return None
        text = self._data[:end].decode("latin-1")
        del self._data[: end + 4]
        return _parse_head(text)

    def _read_sized(self, head: _Head) -> bool:
        length = head.headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit():
            raise BadRequest(400)
        size = int(length)
        if size > _MAX_BODY:
            raise BadRequest(413)
        if len(self._data) < size:
            return False
        self._body = self._data[:size]
        del self._data[:size]
        return True

    def _read_chunks(self) -> bool:
        """Take chunks off the front; the trailer is read and dropped."""
        while True:
            line_end = self._data.find(b"\r\n")
            if line_end < 0:
                return False
            size_text = _HEX_SIZE.fullmatch(self._data[:line_end])
            if not size_text:
                raise BadRequest(400)
            size = int(size_text[1], 16)
            if len(self._body) + size > _MAX_BODY:
                raise BadRequest(413)
            if size == 0:
                return self._drop_trailer(line_end + 2)
            end = line_end + 2 + size
            if len(self._data) < end + 2:
                return False
            self._body += self._data[line_end + 2 : end]
            del self._data[: end + 2]

    def _drop_trailer(self, start: int) -> bool:
        end = start if self._data[start : start + 2] == b"\r\n" else self._data.find(b"\r\n\r\n", start) + 2
        if end < start or len(self._data) < end + 2:
            return False
        del self._data[: end + 2]
        return True


def _parse_head(text: str) -> _Head:
    first, *lines = text.split("\r\n")
    found = _REQUEST_LINE.fullmatch(first)
    if not found:
        raise BadRequest(400)
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise BadRequest(400)
        headers[name.lower()] = value.strip(" \t")
    minor = found[3]
    if minor == "1" and "host" not in headers:
        raise BadRequest(400, "missing required Host header")
    wish = headers.get("connection", "").lower()
    keep_alive = wish != "close" if minor == "1" else wish == "keep-alive"
    return _Head(found[1], _path_of(found[2]), headers, keep_alive)


def _path_of(target: str) -> str:
    """The decoded path of a request target in either form (`/path` or `http://host/path`)."""
    if not target.startswith("/"):
        _, _, rest = target.partition("://")
        target = "/" + rest.partition("/")[2]
    return unquote_to_bytes(target.partition("?")[0]).decode("utf-8", "replace")


def render(response: Response, *, head_only: bool = False, keep_alive: bool = True) -> bytes:
    """The response as bytes, headers in Go's order: its handler's by name, then Date and Content-Length."""
    body = response.body.encode()
    headers = dict(response.headers)
    if response.content_type:
        headers["Content-Type"] = response.content_type
    lines = [f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}"]
    lines += [f"{name}: {headers[name]}" for name in sorted(headers)]
    lines.append(f"Date: {time.strftime(_DATE, time.gmtime())}")
    if response.status != HTTPStatus.NO_CONTENT and not (head_only and not body):
        lines.append(f"Content-Length: {len(body)}")
    if not keep_alive:
        lines.append("Connection: close")
    head = "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n"
    return head if head_only else head + body


def plain(status: int, text: str) -> Response:
    """Text as Go's http.Error sends it."""
    return Response(status, text + "\n", PLAIN, {"X-Content-Type-Options": "nosniff"})
