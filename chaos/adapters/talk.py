"""A longer talk on one connection in each of the wires, every byte that comes counted, also when it ends in the middle.

http       GET /ping, with a header that makes the question longer, a few at a time; or one page after the other
redis      ECHO of a long text
postgres   a session, then SELECT of a long text
"""

from __future__ import annotations

import asyncio
import re
import time
from typing import Literal

from chaos.adapters.pgwire import STARTUP, messages, query
from chaos.ports import Exchanged, Wire

_TEXT_MOST = 16 * 1024  # of one echo: servers take it in one piece
_HEADER_MOST = 1024
_PAGE_HEADER = 6 * 1024  # servers refuse a head of more than 8 KiB
_AT_ONCE = 8
_READ = 64 * 1024
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class _Counted:
    """What comes, and how much of it has come."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self._held = b""
        self.received = 0

    async def readexactly(self, count: int, /) -> bytes:
        """So many bytes. Raises EOFError."""
        while len(self._held) < count:
            await self._more()
        taken, self._held = self._held[:count], self._held[count:]
        return taken

    async def readuntil(self, mark: bytes) -> bytes:
        """All up to the mark. Raises EOFError."""
        while mark not in self._held:
            await self._more()
        return await self.readexactly(self._held.index(mark) + len(mark))

    async def _more(self) -> None:
        data = await self._reader.read(_READ)
        if not data:
            raise EOFError("the connection ended")
        self.received += len(data)
        self._held += data


class Talk:
    """One connection that stands already."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Nothing is asked yet."""
        self._reader, self._writer = _Counted(reader), writer
        self._sent = 0
        self._began = time.monotonic()

    async def hold(self, wire: Wire, address: str, size: int, page: str | None = None) -> None:
        """Ask until `size` bytes have gone each way, over HTTP for that page if one is given. Raises EOFError, OSError,
        and ValueError for another protocol.
        """
        if wire == "postgres":
            self._say(STARTUP)
            await self._session()
        while (left := size - min(self._sent, self._reader.received)) > 0:
            match wire:
                case "postgres":
                    self._say(query(f"SELECT '{'x' * min(left, _TEXT_MOST)}'"))
                    await self._session()
                case "redis":
                    await self._echo(b"x" * min(left, _TEXT_MOST))
                case "http" if page:
                    self._say(_get(page, address, _PAGE_HEADER))
                    await self._answer()
                case "http":
                    await self._pings(address, size)

    def ended(self, ending: Literal["whole", "broken", "silent"]) -> Exchanged:
        """What there is to tell, at the end."""
        return Exchanged(ending, self._reader.received, time.monotonic() - self._began)

    def _say(self, data: bytes) -> None:
        self._sent += len(data)
        self._writer.write(data)

    async def _session(self) -> None:
        """Messages up to the next `ready for query`."""
        async for kind, body in messages(self._reader):
            if kind == b"E" or (kind == b"R" and body[:4] != b"\0\0\0\0"):
                raise ValueError("the server refused")

    async def _echo(self, text: bytes) -> None:
        self._say(b"*2\r\n$4\r\nECHO\r\n$%d\r\n%b\r\n" % (len(text), text))
        head = await self._reader.readuntil(b"\r\n")
        if not head.startswith(b"$"):
            raise ValueError("no Redis answer")
        await self._reader.readexactly(len(text) + 2)

    async def _pings(self, address: str, size: int) -> None:
        """One alone if little is left to say, else a few in a row."""
        sent, received = size - self._sent, size - self._reader.received
        count = _AT_ONCE if received > _HEADER_MOST or sent > _HEADER_MOST else 1
        self._say(_get("/ping", address, max(1, min(sent, _HEADER_MOST))) * count)
        for _ in range(count):
            await self._answer()

    async def _answer(self) -> None:
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if not head.startswith(b"HTTP/1.") or not length:
            raise ValueError("no HTTP answer of known length")
        await self._reader.readexactly(int(length[1]))


def _get(page: str, address: str, padding: int) -> bytes:
    """A question with a header of so many bytes."""
    said = f"GET {page} HTTP/1.1\r\nHost: {address}\r\nX-Padding: {'x' * padding}\r\n\r\n"
    return said.encode("ascii")
