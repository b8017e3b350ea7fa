"""PostgreSQL's protocol 3.0 for a client without a password: the start of a session, and its messages."""

from __future__ import annotations

import struct
from collections.abc import AsyncIterator
from typing import Protocol

_VERSION = 3 << 16
_WHO = b"user\0postgres\0database\0postgres\0application_name\0brownout\0\0"
_MESSAGE_BYTES_MAX = 1 << 24

STARTUP = struct.pack("!II", len(_WHO) + 8, _VERSION) + _WHO
"""The first message; the server answers with several, the last of them `ready for query`."""


class Reads(Protocol):
    """As much of a stream as is needed."""

    async def readexactly(self, count: int, /) -> bytes:
        """So many bytes. Raises EOFError."""
        ...


def query(text: str) -> bytes:
    """A simple query."""
    body = text.encode() + b"\0"
    return b"Q" + struct.pack("!I", len(body) + 4) + body


async def messages(reader: Reads) -> AsyncIterator[tuple[bytes, bytes]]:
    """Kind and body of each up to `ready for query`. Raises EOFError, and ValueError for another protocol."""
    kind = b""
    while kind != b"Z":
        head = await reader.readexactly(5)
        kind, size = head[:1], struct.unpack("!I", head[1:])[0]
        if not 4 <= size <= _MESSAGE_BYTES_MAX:
            raise ValueError(f"a message of {size} bytes")
        yield kind, await reader.readexactly(size - 4)
