"""The Valkey client: single commands, no retries of its own, and a connection that is dropped rather than reused after
trouble.

The time limit of a call is the caller's (`Dependency`); the library's own would be multiplied by its retries. A call
that is cut off in the middle closes its connection, or the next caller would read the answer meant for this one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from redis.asyncio import ConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from target_stack.gateway.dependency import CallFailed

_SCAN_COUNT = 256


class CacheClient:
    """Values by key. Every call raises CallFailed."""

    def __init__(self, address: tuple[str, int], connections: int) -> None:
        host, port = address
        pool = ConnectionPool(
            host=host,
            port=port,
            protocol=2,
            max_connections=connections,
            retry=Retry(NoBackoff(), 0),
            socket_timeout=None,
            driver_info=None,
        )
        self._redis = Redis(connection_pool=pool)

    async def get(self, key: str) -> tuple[bytes, float] | None:
        """A value and the seconds that it has left, or None."""
        try:
            value = await self._redis.get(key)
            left_ms = 0 if value is None else await self._redis.pttl(key)
        except (RedisError, OSError) as problem:
            raise CallFailed("get_failed") from problem
        return None if value is None else (_raw(value), left_ms / 1000)

    async def put(self, key: str, value: bytes, lifetime_s: float) -> None:
        """Keep a value for so long."""
        try:
            await self._redis.set(key, value, px=max(1, int(lifetime_s * 1000)))
        except (RedisError, OSError) as problem:
            raise CallFailed("put_failed") from problem

    async def keys(self, pattern: str) -> AsyncIterator[str]:
        """All keys of a pattern; some may come twice."""
        try:
            async for key in self._redis.scan_iter(match=pattern, count=_SCAN_COUNT):
                yield _raw(key).decode()
        except (RedisError, OSError) as problem:
            raise CallFailed("scan_failed") from problem

    async def values(self, keys: Sequence[str]) -> list[bytes | None]:
        """The values of some keys, None where there is none."""
        try:
            found = await self._redis.mget(keys)
        except (RedisError, OSError) as problem:
            raise CallFailed("get_failed") from problem
        return [None if value is None else _raw(value) for value in found]

    async def close(self) -> None:
        """Close all connections."""
        await self._redis.aclose(close_connection_pool=True)


def _raw(value: bytes | str) -> bytes:
    """Replies are bytes; the library's types allow for a setting that would decode them."""
    return value if isinstance(value, bytes) else value.encode()
