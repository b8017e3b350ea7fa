"""TCP seen from outside: does a connect succeed, and how long does the smallest question and answer take?"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable

from chaos.adapters import tcp
from chaos.adapters.talk import Talk
from chaos.ports import ConnectResult, Exchanged, Segments, Wire

# PostgreSQL protocol, "SSLRequest": length 8, code 80877103; the server answers with the single byte S or N.
_SSL_REQUEST = struct.pack("!ii", 8, 80877103)

_NO_TALK = Exchanged("none", 0, 0.0)
_SMALL_SEGMENT = 536
"""Bytes: the least that every host takes (RFC 9293, 3.7.1)."""
_LONG_PAGE = "/metrics"
"""One question with an answer of many segments, which costs the target less than many questions."""


def split_address(address: str) -> tuple[str, int]:
    """`127.0.0.1:80` or `[::1]:80` as host and port. Raises ValueError."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


_Line = contextlib.AbstractAsyncContextManager[tuple[asyncio.StreamReader, asyncio.StreamWriter]]


class TcpNetwork:
    """The `Network` port on this machine."""

    async def connect(self, address: str, timeout_s: float) -> ConnectResult:
        """Open and close one connection."""
        try:
            async with asyncio.timeout(timeout_s), _connection(address):
                return "accepted"
        except TimeoutError:
            return "timeout"
        except (ConnectionRefusedError, ConnectionResetError):
            return "refused"
        except OSError:
            return "unreachable"

    async def round_trip(self, address: str, wire: Wire, timeout_s: float) -> float | None:
        """Seconds from question to answer on a connection that stands already; None when no answer came."""
        try:
            async with asyncio.timeout(timeout_s), _connection(address) as (reader, writer):
                asked_at = time.monotonic()
                writer.write(_question(wire, address))
                answered = await _answered(reader, wire)
                return time.monotonic() - asked_at if answered else None
        except (OSError, EOFError, asyncio.LimitOverrunError):
            return None

    async def exchange(self, address: str, wire: Wire, size: int, timeout_s: float) -> Exchanged:
        """As the port says. What came before the connection broke or fell silent counts."""
        return await _talk(_connection(address), lambda talk: talk.hold(wire, address, size), timeout_s)

    async def segments(self, address: str, wire: Wire, size: int, timeout_s: float) -> Segments:
        """As the port says. What TCP counted before the connection broke counts, also when there never was one."""
        host, port = split_address(address)
        before = tcp.counters()
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as plug:
            plug.setblocking(False)
            plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, _SMALL_SEGMENT)
            began, rtt_s = time.monotonic(), None
            with contextlib.suppress(OSError):
                async with asyncio.timeout(timeout_s):
                    await asyncio.get_running_loop().sock_connect(plug, (host, port))
                rtt_s = tcp.rtt_of(plug)
            talk = _NO_TALK
            if rtt_s is not None and size:
                left_s = began + timeout_s - time.monotonic()
                talk = await _talk(_plugged(plug), lambda talk: talk.hold(wire, address, size, _LONG_PAGE), left_s)
            return tcp.segments(plug, talk, rtt_s, before, tcp.counters())


async def _talk(line: _Line, hold: Callable[[Talk], Awaitable[None]], timeout_s: float) -> Exchanged:
    talk: Talk | None = None
    try:
        async with asyncio.timeout(timeout_s), line as (reader, writer):
            talk = Talk(reader, writer)
            await hold(talk)
            return talk.ended("whole")
    except TimeoutError:
        return talk.ended("silent") if talk else _NO_TALK
    except (OSError, EOFError):
        return talk.ended("broken") if talk else _NO_TALK
    except ValueError:
        return _NO_TALK


def _question(wire: Wire, address: str) -> bytes:
    if wire == "postgres":
        return _SSL_REQUEST
    if wire == "redis":
        return b"PING\r\n"  # an inline command of the Redis protocol
    return f"GET /ping HTTP/1.1\r\nHost: {address}\r\nConnection: keep-alive\r\n\r\n".encode("ascii")


async def _answered(reader: asyncio.StreamReader, wire: Wire) -> bool:
    """Whether what comes first is an answer of this wire. Raises EOFError when the connection ends before it."""
    if wire == "postgres":
        return await reader.readexactly(1) in (b"S", b"N")
    if wire == "redis":
        # `-LOADING` while it reads its data: the process answers, the service does not yet.
        return (await reader.readuntil(b"\r\n")).startswith(b"+PONG")
    return (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.")


@contextlib.asynccontextmanager
async def _plugged(plug: socket.socket) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection that stands already; the socket is left open."""
    reader, writer = await asyncio.open_connection(sock=plug.dup())
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


@contextlib.asynccontextmanager
async def _connection(address: str) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    host, port = split_address(address)
    reader, writer = await asyncio.open_connection(host, port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()  # the far side may be frozen: never wait for it
