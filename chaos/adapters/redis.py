"""A few commands to a server that speaks the Redis protocol, on a connection of their own.

No client library: those retry by themselves, which multiplies every time limit, and an observer must not wait longer
than it says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from chaos.adapters.network import split_address
from chaos.ports import RedisRefused, RedisReply

_LINE_BYTES_MAX = 1 << 20


class RedisCalls:
    """The `Redis` port over TCP, protocol version 2 (RESP2)."""

    async def ask(
        self, address: str, commands: Sequence[Sequence[str]], *, timeout_s: float = 1.0
    ) -> tuple[RedisReply, ...]:
        """As the port says."""
        async with asyncio.timeout(timeout_s):
            reader, writer = await asyncio.open_connection(*split_address(address), limit=_LINE_BYTES_MAX)
            try:
                writer.write(b"".join(map(_written, commands)))
                replies = [await _read(reader) for _ in commands]
            except (EOFError, ValueError) as problem:
                raise ConnectionError(f"{address} broke off or spoke another protocol") from problem
            finally:
                writer.transport.abort()  # the far side may be frozen: never wait for it
        refused = next((reply for reply in replies if isinstance(reply, RedisRefused)), None)
        if refused:
            raise refused
        return tuple(reply for reply in replies if not isinstance(reply, RedisRefused))


def _written(command: Sequence[str]) -> bytes:
    words = [word.encode() for word in command]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


async def _read(reader: asyncio.StreamReader) -> RedisReply | RedisRefused:
    """One reply; a refusal is a value here, because the replies behind it must be read too."""
    line = (await reader.readuntil(b"\r\n"))[:-2].decode("utf-8", "replace")
    kind, rest = line[:1], line[1:]
    if kind == "+":
        return rest
    if kind == "-":
        return RedisRefused(rest)
    if kind == ":":
        return int(rest)
    if kind == "$":
        return None if rest == "-1" else (await reader.readexactly(int(rest) + 2))[:-2].decode("utf-8", "replace")
    if kind != "*":
        raise ValueError(f"no reply of the Redis protocol begins with {kind!r}")
    items = [await _read(reader) for _ in range(int(rest))]
    refused = next((item for item in items if isinstance(item, RedisRefused)), None)
    return refused or tuple(item for item in items if not isinstance(item, RedisRefused))
