"""A talk counts every byte, and says how it ended, in each of the wires."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from chaos.adapters.network import TcpNetwork
from chaos.ports import Exchanged, Wire

pytestmark = pytest.mark.system

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
PONG = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\npong"
READY = b"R" + struct.pack("!II", 8, 0) + b"Z" + struct.pack("!I", 5) + b"I"


async def pings(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A small HTTP server."""
    while await reader.readuntil(b"\r\n\r\n"):
        writer.write(PONG)


async def echoes(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """As much of Redis as an ECHO needs."""
    while await reader.readexactly(len(b"*2\r\n$4\r\nECHO\r\n$")):
        length = await reader.readuntil(b"\r\n")
        writer.write(b"$" + length + await reader.readexactly(int(length) + 2))


async def sessions(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """As much of PostgreSQL as a SELECT of a text needs; rows are told as notices, which are as long."""
    await reader.readexactly(struct.unpack("!I", await reader.readexactly(4))[0] - 4)
    writer.write(READY)
    while await reader.readexactly(1):
        query = await reader.readexactly(struct.unpack("!I", await reader.readexactly(4))[0] - 4)
        writer.write(b"N" + struct.pack("!I", len(query) + 4) + query + READY[-6:])


async def hangs(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Half an answer, and no more."""
    await reader.read(1)
    writer.write(PONG[:10])
    await asyncio.sleep(60)


async def breaks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Half an answer, and the end."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(PONG[:10])


async def mumbles(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Something else."""
    await reader.read(1)
    writer.write(b"SSH-2.0-server\r\n\r\n")


@contextlib.asynccontextmanager
async def _server(serve: Serve) -> AsyncIterator[str]:
    serving: set[asyncio.Task[None]] = set()

    async def guarded(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.current_task())
        with contextlib.suppress(OSError, EOFError, asyncio.CancelledError):
            await serve(reader, writer)
        writer.close()

    server = await asyncio.start_server(guarded, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()
        yield f"{host}:{port}"
        for task in serving:
            task.cancel()
    await asyncio.gather(*serving)


def _talk(serve: Serve, wire: Wire, size: int, timeout_s: float = 20.0) -> Exchanged:
    async def main() -> Exchanged:
        async with _server(serve) as address:
            return await TcpNetwork().exchange(address, wire, size, timeout_s)

    return asyncio.run(main())


@pytest.mark.parametrize("size", [1, 50_000])
@pytest.mark.parametrize(("serve", "wire"), [(pings, "http"), (echoes, "redis"), (sessions, "postgres")])
def test_a_talk_goes_on_until_enough_has_been_said(serve: Serve, wire: Wire, size: int) -> None:
    talk = _talk(serve, wire, size)
    assert ("whole", True) == (talk.ending, talk.received >= size)
    assert 0 < talk.took_s


def test_a_talk_that_breaks_off_counts_what_came() -> None:
    talk = _talk(breaks, "http", 1)
    assert ("broken", 10) == (talk.ending, talk.received)


def test_a_talk_that_falls_silent_lasts_as_long_as_the_patience() -> None:
    talk = _talk(hangs, "http", 1, timeout_s=0.1)
    assert ("silent", 10) == (talk.ending, talk.received)
    assert 0.09 < talk.took_s


def test_another_protocol_is_no_talk() -> None:
    for wire in ("http", "redis", "postgres"):
        assert "none" == _talk(mumbles, wire, 1).ending


def test_where_nobody_listens_there_is_no_talk() -> None:
    async def main() -> Exchanged:
        async with _server(pings) as address:
            pass
        return await TcpNetwork().exchange(address, "http", 1, 5.0)

    assert Exchanged("none", 0, 0.0) == asyncio.run(main())
