"""The observer's eye on TCP: connects and smallest round trips against real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest

from chaos.adapters.network import TcpNetwork, split_address

pytestmark = pytest.mark.system


@contextlib.asynccontextmanager
async def _server(answer: bytes, *, delay_s: float = 0.0) -> AsyncIterator[str]:
    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.current_task())
        with contextlib.suppress(OSError, asyncio.CancelledError):
            if await reader.read(100):
                await asyncio.sleep(delay_s)
                writer.write(answer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()
        yield f"{host}:{port}"
    await asyncio.sleep(0)
    for task in serving:
        task.cancel()
    await asyncio.gather(*serving)


def _trip(answer: bytes, wire, *, delay_s: float = 0.0, timeout_s: float = 5.0) -> float | None:
    async def main() -> float | None:
        async with _server(answer, delay_s=delay_s) as address:
            return await TcpNetwork().round_trip(address, wire, timeout_s)

    return asyncio.run(main())


def test_an_address_is_split_at_its_last_colon() -> None:
    assert split_address("127.0.0.1:80") == ("127.0.0.1", 80)
    assert split_address("[::1]:80") == ("::1", 80)


def test_a_listener_accepts() -> None:
    async def main() -> str:
        async with _server(b"") as address:
            return await TcpNetwork().connect(address, 5.0)

    assert asyncio.run(main()) == "accepted"


def test_a_port_without_listener_refuses() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        assert asyncio.run(TcpNetwork().connect(f"127.0.0.1:{port}", 5.0)) == "refused"


def test_a_full_backlog_times_out() -> None:
    with socket.socket() as full, contextlib.ExitStack() as waiting:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        for _ in range(3):
            client = waiting.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(full.getsockname())
        port = full.getsockname()[1]
        assert asyncio.run(TcpNetwork().connect(f"127.0.0.1:{port}", 0.05)) == "timeout"


def test_a_round_trip_is_the_time_to_the_answer() -> None:
    trip_s = _trip(b"HTTP/1.1 200 OK\r\n\r\n", "http", delay_s=0.03)
    assert trip_s is not None
    assert trip_s >= 0.03


@pytest.mark.parametrize("answer", [b"S", b"N"])
def test_postgres_answers_with_one_letter(answer: bytes) -> None:
    assert _trip(answer, "postgres") is not None


def test_redis_answers_a_ping_with_a_pong() -> None:
    assert _trip(b"+PONG\r\n", "redis") is not None


@pytest.mark.parametrize(
    ("answer", "wire"),
    [
        (b"", "http"),
        (b"", "postgres"),
        (b"", "redis"),
        (b"HTTP/1.1 2", "http"),
        (b"E", "postgres"),
        (b"-LOADING Valkey is loading the dataset in memory\r\n", "redis"),
    ],
)
def test_a_connection_that_ends_or_says_something_else_is_no_answer(answer: bytes, wire) -> None:
    assert _trip(answer, wire) is None


def test_silence_is_no_answer() -> None:
    assert _trip(b"S", "postgres", delay_s=0.5, timeout_s=0.02) is None
