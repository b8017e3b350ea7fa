"""PostgreSQL's protocol, byte by byte."""

from __future__ import annotations

import asyncio
import contextlib
import struct

import pytest

from chaos.adapters.postgres import PostgresCalls
from chaos.ports import PostgresRefused, Rows


def message(kind: bytes, body: bytes = b"") -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


def row(*values: bytes | None) -> bytes:
    cells = [struct.pack("!i", -1) if v is None else struct.pack("!I", len(v)) + v for v in values]
    return message(b"D", struct.pack("!H", len(values)) + b"".join(cells))


TRUST, READY, DONE = message(b"R", b"\0\0\0\0"), message(b"Z", b"I"), message(b"C", b"SELECT 1\0")


def ask(answer: bytes, *statements: str, hello: bytes = TRUST + READY, timeout_s: float = 5.0) -> tuple[bytes, object]:
    async def main() -> tuple[bytes, object]:
        heard = bytearray()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(asyncio.CancelledError, OSError):
                (size,) = struct.unpack("!I", await reader.readexactly(4))
                await reader.readexactly(size - 4)
                writer.write(hello)
                heard.extend(await reader.read(4096))
                writer.write(answer)
                await reader.read()
            writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            address = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
            found: tuple[Rows, ...] = await PostgresCalls().ask(address, statements, timeout_s=timeout_s)
            return bytes(heard), found

    return asyncio.run(main())


def test_statements_go_as_one_message_and_each_has_its_rows() -> None:
    heard, found = ask(row(b"52", None) + DONE + DONE + READY, "SELECT 1", "DROP TABLE x")
    assert heard == message(b"Q", b"SELECT 1;DROP TABLE x\0")
    assert found == ((("52", None),), ())


def test_a_refusal_has_its_code_and_the_servers_words() -> None:
    error = message(b"E", b'SERROR\0C42P01\0Mrelation "x" does not exist\0\0')
    with pytest.raises(PostgresRefused, match='relation "x" does not exist') as refused:
        ask(error + READY, "SELECT 1")
    assert refused.value.code == "42P01"


def test_a_server_that_wants_a_password_is_refused_at_once() -> None:
    with pytest.raises(PostgresRefused, match="asks for a password"):
        ask(b"", "SELECT 1", hello=message(b"R", b"\0\0\0\5salt"))


@pytest.mark.parametrize("answer", [message(b"T")[:3], b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_a_broken_or_foreign_answer_is_no_answer(answer: bytes) -> None:
    with pytest.raises((ConnectionError, TimeoutError)):
        ask(answer, "SELECT 1", timeout_s=0.3)


def test_a_silent_server_costs_no_more_than_the_limit() -> None:
    with pytest.raises(TimeoutError):
        ask(b"", "SELECT 1", timeout_s=0.05)


def test_nobody_there_is_an_os_error() -> None:
    with pytest.raises(OSError):
        asyncio.run(PostgresCalls().ask("127.0.0.1:1", ("SELECT 1",)))
