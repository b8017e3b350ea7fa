"""What the kernel counts of TCP, read from its own structures."""

from __future__ import annotations

import asyncio
import socket
import struct

from chaos.adapters import tcp
from chaos.adapters.network import TcpNetwork
from chaos.ports import Exchanged


def test_counters_have_the_name_of_their_group() -> None:
    found = tcp.counters()
    assert {"Tcp.InCsumErrors", "Tcp.RetransSegs", "TcpExt.TCPDSACKOldSent"} <= found.keys()
    assert all(isinstance(value, int) for value in found.values())


def test_a_connection_that_stands_has_a_round_trip_and_one_that_does_not_has_none() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket() as client:
        assert tcp.rtt_of(client) is None
        client.connect(server.getsockname())
        rtt_s = tcp.rtt_of(client)
        assert rtt_s is not None
        assert 0 <= rtt_s < 1


def test_segments_that_we_sent_again_are_no_copies() -> None:
    class Told:
        """A connection with these numbers: resent, copied, early."""

        def getsockopt(self, *_: int) -> bytes:
            info = bytearray(232)
            struct.pack_into("=I", info, 100, 5)
            struct.pack_into("=I", info, 216, 7)
            struct.pack_into("=I", info, 224, 2)
            return bytes(info)

    before = {"Tcp.InCsumErrors": 1, "TcpExt.TCPDSACKOldSent": 10, "Tcp.RetransSegs": 4}
    after = {"Tcp.InCsumErrors": 4, "TcpExt.TCPDSACKOldSent": 15, "Tcp.RetransSegs": 6}
    seen = tcp.segments(Told(), Exchanged("whole", 1, 0.1), 0.001, before, after)  # type: ignore[arg-type]  # a stand-in
    assert (0, 2, 2, 3, 3) == (seen.resent, seen.copied, seen.early, seen.garbled, seen.again)


def test_a_talk_in_small_segments_is_counted() -> None:
    async def main() -> None:
        async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"GET /metrics ")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n" + b"x" * 9000)
            await reader.read()
            writer.close()

        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        async with server:
            address = "{}:{}".format(*server.sockets[0].getsockname())
            seen = await TcpNetwork().segments(address, "http", 4000, 5.0)
            assert "whole" == seen.talk.ending
            assert seen.sent >= 6144 // 536
            assert seen.received >= 9000 // 536
            quiet = await TcpNetwork().segments(address, "http", 0, 5.0)
            assert (Exchanged("none", 0, 0.0), True, 0) == (quiet.talk, quiet.rtt_s is not None, quiet.sent)

    asyncio.run(main())


def test_nobody_at_the_address_is_no_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = "{}:{}".format(*taken.getsockname())
    seen = asyncio.run(TcpNetwork().segments(address, "http", 4000, 1.0))
    assert (None, "none") == (seen.rtt_s, seen.talk.ending)
