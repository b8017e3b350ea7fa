"""A cache server in the test's own loop, so that its silence can be waited for in no time."""

from __future__ import annotations

import asyncio
import contextlib
import fnmatch
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.target_stack.gateway.listening import Listening


class FakeCache(Listening):
    """Speaks just enough of the Redis protocol to keep answers; silent when `frozen`."""

    def __init__(self) -> None:
        super().__init__()
        self.data: dict[bytes, tuple[bytes, float]] = {}
        self.asked: list[str] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while words := [await self._word(reader) for _ in range(int((await reader.readuntil(b"\r\n"))[1:]))]:
                if self.frozen:
                    await asyncio.sleep(60)
                self.asked.append(words[0].decode())
                writer.write(self._answer(*words))
        writer.close()

    async def _word(self, reader: asyncio.StreamReader) -> bytes:
        size = int((await reader.readuntil(b"\r\n"))[1:])
        return (await reader.readexactly(size + 2))[:-2]

    def _answer(self, command: bytes, *words: bytes) -> bytes:
        now = asyncio.get_running_loop().time()
        self.data = {key: kept for key, kept in self.data.items() if kept[1] > now}
        match command:
            case b"GET":
                return _bulk(self.data.get(words[0], (None,))[0])
            case b"PTTL":
                return b":%d\r\n" % int((self.data[words[0]][1] - now) * 1000)
            case b"SET":
                self.data[words[0]] = (words[1], now + int(words[3]) / 1000)
                return b"+OK\r\n"
            case b"MGET":
                return _list([_bulk(self.data.get(key, (None,))[0]) for key in words])
            case b"SCAN":
                found = [key for key in self.data if fnmatch.fnmatch(key.decode(), words[2].decode())]
                return _list([_bulk(b"0"), _list([_bulk(key) for key in found])])
        return b"+OK\r\n"


def _bulk(value: bytes | None) -> bytes:
    return b"$-1\r\n" if value is None else b"$%d\r\n%s\r\n" % (len(value), value)


def _list(items: list[bytes]) -> bytes:
    return b"*%d\r\n" % len(items) + b"".join(items)


@pytest.fixture
def cached(serve: Any) -> Any:
    """`async with cached(**policies) as (stack, cache)`: the gateway of `serve` with a cache."""

    @asynccontextmanager
    async def running(old: FakeCache | None = None, /, **policies: Any) -> AsyncIterator[tuple[Any, FakeCache]]:
        store = old or FakeCache()
        await store.start()
        try:
            async with serve({"cache": f"127.0.0.1:{store.port}"}, **policies) as stack:
                yield stack, store
        finally:
            await store.stop()

    return running
