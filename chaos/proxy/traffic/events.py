"""Server-sent events in a body: where one ends and the next begins, and how a changed stream is framed again.

An event ends with an empty line; lines end with CR LF, LF or CR (WHATWG HTML, 9.2.6). A block without a `data` line is
a comment that keeps the line warm, and counts as no event.
"""

from __future__ import annotations

import re

from chaos.proxy.traffic.messages import Framing, Head

DONE = b"data: [DONE]\n\n"
_BLANK_LINE = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
_DATA = re.compile(rb"(?:^|[\r\n])data:?[ ]?([^\r\n]*)")
_LENGTH_LINE = re.compile(rb"\r\ncontent-length:[^\r\n]*", re.IGNORECASE)
_FRAMING_LINE = re.compile(rb"\r\n(?:content-length|transfer-encoding|trailer):[^\r\n]*", re.IGNORECASE)


class Splitter:
    """Cuts a body into blocks, however its bytes arrive."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """The blocks that are whole now, each with its empty line."""
        self._rest += data
        blocks: list[bytes] = []
        start = 0
        for found in _BLANK_LINE.finditer(self._rest):
            if found.end() == len(self._rest) and self._rest.endswith(b"\r"):
                break  # an LF may follow, and would belong to it
            blocks.append(self._rest[start : found.end()])
            start = found.end()
        self._rest = self._rest[start:]
        return blocks

    def rest(self) -> bytes:
        """What came behind the last empty line."""
        rest, self._rest = self._rest, b""
        return rest


def data_of(block: bytes) -> bytes | None:
    """What the first `data` line of a block says; None for a comment."""
    found = _DATA.search(block)
    return found[1] if found else None


def is_stream(answer: Head) -> bool:
    """Whether these are events that can be read: a plain, uncompressed, successful event stream."""
    plain = answer.headers.get("content-encoding", "identity").lower() == "identity"
    kind = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    return plain and kind == "text/event-stream" and answer.status == 200


def with_chunks(answer: Head) -> bytes:
    """The head of an answer of known length, for a body whose length will be another."""
    return _LENGTH_LINE.sub(b"", answer.raw)[:-4] + b"\r\nTransfer-Encoding: chunked\r\n\r\n"


def with_length(answer: Head, length: int) -> bytes:
    """The head of an answer whose whole body is known now, however it was framed."""
    return _FRAMING_LINE.sub(b"", answer.raw)[:-4] + b"\r\nContent-Length: %d\r\n\r\n" % length


def framed(payload: bytes, framing: Framing) -> bytes:
    """A piece of a body as it goes on the wire."""
    if framing is Framing.CHUNKED and payload:
        return b"%x\r\n%b\r\n" % (len(payload), payload)
    return payload
