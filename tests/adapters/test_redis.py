"""The Redis protocol, byte by byte."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence

import pytest

from chaos.adapters.redis import RedisCalls
from chaos.ports import RedisRefused, RedisReply

pytestmark = pytest.mark.system


@contextlib.asynccontextmanager
async def _server(answer: bytes, heard: list[bytes]) -> AsyncIterator[str]:
    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.current_task())
        with contextlib.suppress(OSError, asyncio.CancelledError):
            heard.append(await reader.read(1000))
            writer.write(answer)
            await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        host, port = server.sockets[0].getsockname()
        try:
            yield f"{host}:{port}"
        finally:
            for task in serving:
                task.cancel()
            await asyncio.gather(*serving)


def _ask(answer: bytes, *commands: Sequence[str], timeout_s: float = 5.0) -> tuple[bytes, tuple[RedisReply, ...]]:
    async def main() -> tuple[bytes, tuple[RedisReply, ...]]:
        heard: list[bytes] = []
        async with _server(answer, heard) as address:
            replies = await RedisCalls().ask(address, commands, timeout_s=timeout_s)
            return heard[0], replies

    return asyncio.run(main())


def test_words_go_out_with_their_lengths_in_bytes() -> None:
    assert _ask(b"+OK\r\n", ("SET", "Grüße", ""))[0] == b"*3\r\n$3\r\nSET\r\n$7\r\nGr\xc3\xbc\xc3\x9fe\r\n$0\r\n\r\n"


@pytest.mark.parametrize(
    ("answer", "reply"),
    [
        (b"+OK\r\n", "OK"),
        (b":-3\r\n", -3),
        (b"$-1\r\n", None),
        (b"$5\r\na\r\nbc\r\n", "a\r\nbc"),
        (b"*0\r\n", ()),
        (b"*2\r\n$1\r\n0\r\n*1\r\n$1\r\nk\r\n", ("0", ("k",))),
    ],
)
def test_every_shape_of_reply_is_read(answer: bytes, reply: RedisReply) -> None:
    assert _ask(answer, ("PING",))[1] == (reply,)


@pytest.mark.parametrize("answer", [b"+OK\r\n-ERR no\r\n", b"+OK\r\n*2\r\n:1\r\n-ERR no\r\n"], ids=["alone", "inside"])
def test_a_refusal_of_any_command_is_raised_in_its_own_words(answer: bytes) -> None:
    with pytest.raises(RedisRefused, match=r"^ERR no$"):
        _ask(answer, ("PING",), ("EXEC",))


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400\r\n\r\n", b"$x\r\n", b":1\r\n$9\r\n"], ids=repr)
def test_another_protocol_is_no_answer(answer: bytes) -> None:
    with pytest.raises((ConnectionError, TimeoutError)):
        _ask(answer, ("PING",), ("PING",), timeout_s=0.2)


def test_silence_ends_at_the_time_limit() -> None:
    with pytest.raises(TimeoutError):
        _ask(b"", ("PING",), timeout_s=0.05)


def test_nobody_there_is_told() -> None:
    with pytest.raises(OSError):
        asyncio.run(RedisCalls().ask("127.0.0.1:1", (("PING",),)))
