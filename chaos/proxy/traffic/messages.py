"""HTTP/1.1 read off a byte stream without losing a byte: what is not understood falls through as it came.

    bytes ─► Reader ─► Head · Data · Frame · End · Alien ─► whoever passes them on, changes them, or drops them

The raw bytes of all parts, put together, are the bytes that went in. Only a head or a chunk's size line that is not
whole yet is held back. A stream may be joined in the middle: a message begins where a piece of it begins like one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

_MAX_HEAD = 64 * 1024
_MAX_LINE = 4096
_METHODS = "GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS|TRACE|CONNECT"
_REQUEST = re.compile(rf"({_METHODS}) (\S+) HTTP/1\.([01])")
_ANSWER = re.compile(r"HTTP/1\.([01]) ([1-9]\d\d)( .*)?")
_CHUNK_SIZE = re.compile(rb"[ \t]*([0-9a-fA-F]{1,15})[ \t]*(;[^\r\n]*)?\r\n")


class Framing(Enum):
    """How a body ends."""

    NONE = "there is no body"
    LENGTH = "after Content-Length bytes"
    CHUNKED = "with a chunk of size 0"
    CLOSE = "with the connection"


@dataclass(frozen=True, slots=True)
class Head:
    """The start line and the headers. Header names are lower case. A request has a method, an answer a status."""

    raw: bytes
    headers: Mapping[str, str]
    minor: int
    method: str = ""
    target: str = ""
    status: int = 0

    @property
    def keep_alive(self) -> bool:
        """Whether the sender wants to use the connection again."""
        wish = self.headers.get("connection", "").lower()
        return wish != "close" if self.minor else wish == "keep-alive"

    def framing(self, asked_with: str = "") -> Framing:
        """How the body that follows ends; an answer also depends on the method that asked for it (RFC 9112, 6.3)."""
        if asked_with == "HEAD" or 100 <= self.status < 200 or self.status in (204, 304):
            return Framing.NONE
        if self.headers.get("transfer-encoding", "").lower().endswith("chunked"):
            return Framing.CHUNKED
        if "content-length" in self.headers:
            return Framing.LENGTH
        return Framing.CLOSE if self.status else Framing.NONE


@dataclass(frozen=True, slots=True)
class Data:
    """A piece of a body, without framing."""

    raw: bytes


@dataclass(frozen=True, slots=True)
class Frame:
    """Framing around pieces of a body: a chunk's size line, or the line end behind it."""

    raw: bytes


@dataclass(frozen=True, slots=True)
class End:
    """The message is over; `raw` is the last of its framing."""

    raw: bytes = b""


@dataclass(frozen=True, slots=True)
class Alien:
    """Bytes that are no part of a message that could be read."""

    raw: bytes


Part = Head | Data | Frame | End | Alien


class _State(Enum):
    HEAD = "before or in a head"
    BODY = "in a body whose rest is counted"
    CHUNK_LINE = "before a chunk's size"
    CHUNK_END = "before the line end behind a chunk"
    TRAILER = "behind the last chunk"
    UNTIL_CLOSE = "in a body without an end of its own"
    OPAQUE = "nothing more can be understood"


class Reader:
    """One direction of one connection, fed piece by piece. Never raises.

    `answers` says which side is read; `asked_with` tells the method of the request whose answer comes next.
    """

    def __init__(self, *, answers: bool, asked_with: Callable[[], str] = str) -> None:
        self._answers = answers
        self._asked_with = asked_with
        self._held = b""
        self._left = 0  # bytes of a body or chunk that are still to come
        self._state = _State.HEAD

    @property
    def between(self) -> bool:
        """No message has begun."""
        return self._state is _State.HEAD and not self._held

    def feed(self, data: bytes) -> Iterator[Part]:
        """The parts that are whole now. Each is read only when the one before has been dealt with."""
        self._held += data
        while self._held:
            before = len(self._held), self._state
            parts: list[Part] = []
            self._step(parts)
            yield from parts
            if before == (len(self._held), self._state):
                return

    def finish(self) -> list[Part]:
        """The stream has ended: what was held, and the end of a body that lasts until then."""
        parts: list[Part] = [Alien(self._take(len(self._held)))] if self._held else []
        if self._state is _State.UNTIL_CLOSE:
            parts.append(End())
        self._state = _State.OPAQUE
        return parts

    def _step(self, parts: list[Part]) -> None:
        match self._state:
            case _State.HEAD:
                self._head(parts)
            case _State.BODY:
                self._body(parts)
            case _State.CHUNK_LINE:
                self._chunk_line(parts)
            case _State.CHUNK_END:
                self._chunk_end(parts)
            case _State.TRAILER:
                self._trailer(parts)
            case _State.UNTIL_CLOSE:
                parts.append(Data(self._take(len(self._held))))
            case _State.OPAQUE:
                parts.append(Alien(self._take(len(self._held))))

    def _head(self, parts: list[Part]) -> None:
        if not self._may_be_head():
            parts.append(Alien(self._take(len(self._held))))
            return
        end = self._held.find(b"\r\n\r\n")
        if end < 0:
            return
        raw = self._take(end + 4)
        head = read_head(raw, answers=self._answers)
        length = head and head.framing(self._asked_with()) is Framing.LENGTH and head.headers["content-length"]
        if head is None or (length and not (length.isascii() and length.isdigit())):
            self._lose(parts, raw)
            return
        parts.append(head)
        self._after_head(head, parts)

    def _after_head(self, head: Head, parts: list[Part]) -> None:
        if head.status == 101 or head.method == "CONNECT":
            self._state = _State.OPAQUE
            return
        match head.framing(self._asked_with()):
            case Framing.CHUNKED:
                self._state = _State.CHUNK_LINE
            case Framing.CLOSE:
                self._state = _State.UNTIL_CLOSE
            case Framing.LENGTH if int(head.headers["content-length"]):
                self._left, self._state = int(head.headers["content-length"]), _State.BODY
            case _:
                parts.append(End())

    def _body(self, parts: list[Part]) -> None:
        piece = self._take(self._left)
        self._left -= len(piece)
        parts.append(Data(piece))
        if not self._left:
            self._state = _State.HEAD
            parts.append(End())

    def _chunk_line(self, parts: list[Part]) -> None:
        if self._left:
            piece = self._take(self._left)
            self._left -= len(piece)
            parts.append(Data(piece))
            self._state = _State.CHUNK_LINE if self._left else _State.CHUNK_END
            return
        found = _CHUNK_SIZE.match(self._held)
        if not found:
            if b"\n" in self._held or len(self._held) > _MAX_LINE:
                self._lose(parts)
            return
        size = int(found[1], 16)
        if size == 0:
            self._state = _State.TRAILER
            return
        self._left = size
        parts.append(Frame(self._take(found.end())))

    def _chunk_end(self, parts: list[Part]) -> None:
        if len(self._held) < 2 and self._held == b"\r":
            return
        if not self._held.startswith(b"\r\n"):
            self._lose(parts)
            return
        parts.append(Frame(self._take(2)))
        self._state = _State.CHUNK_LINE

    def _trailer(self, parts: list[Part]) -> None:
        """The last size line is still held: the end of a message is one piece with its trailer."""
        line_end = self._held.index(b"\r\n") + 2
        if self._held.startswith(b"\r\n", line_end):
            end = line_end + 2
        else:
            blank = self._held.find(b"\r\n\r\n", line_end)
            if blank < 0:
                if len(self._held) > _MAX_HEAD:
                    self._lose(parts)
                return
            end = blank + 4
        self._state = _State.HEAD
        parts.append(End(self._take(end)))

    def _lose(self, parts: list[Part], before: bytes = b"") -> None:
        self._state = _State.OPAQUE
        parts.append(Alien(before + self._take(len(self._held))))

    def _may_be_head(self) -> bool:
        """Whether what is held is, or may still become, a head."""
        if len(self._held) > _MAX_HEAD:
            return False
        line, newline, _ = self._held.partition(b"\r\n")
        text = line.decode("latin-1")
        if newline:
            return bool((_ANSWER if self._answers else _REQUEST).fullmatch(text))
        if b"\n" in line or len(line) > _MAX_LINE * 4:
            return False
        starts = ("HTTP/1.",) if self._answers else tuple(f"{method} " for method in _METHODS.split("|"))
        return any(text.startswith(start) or start.startswith(text.rstrip("\r")) for start in starts)

    def _take(self, count: int) -> bytes:
        taken, self._held = self._held[:count], self._held[count:]
        return taken


def read_head(raw: bytes, *, answers: bool) -> Head | None:
    """The head in these bytes, or None if they are none."""
    first, *lines = raw[:-4].decode("latin-1").split("\r\n")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            return None
        headers[name.lower()] = value.strip(" \t")
    if answers:
        found = _ANSWER.fullmatch(first)
        return Head(raw, headers, int(found[1]), status=int(found[2])) if found else None
    found = _REQUEST.fullmatch(first)
    return Head(raw, headers, int(found[3]), method=found[1], target=found[2]) if found else None
