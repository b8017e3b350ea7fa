"""Valkey as a part that the supervisor runs."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from target_stack.cache.server import ValkeyServer
from target_stack.process import Account
from target_stack.web_service import split_address

_CHECK_TIMEOUT_S = 1.0


@dataclass
class Valkey:
    """A real Valkey. A restart finds its data again."""

    name: str
    server: ValkeyServer
    account: Account | None
    log: Path
    stop_signal: int = signal.SIGTERM

    async def job(self, port: int) -> Mapping[str, Any]:
        """Serve the data folder."""
        account = [self.account.uid, self.account.gid] if self.account else None
        return {"name": self.name, "argv": self.server.serve(port), "account": account, "log": str(self.log)}

    async def serves(self, address: str) -> bool:
        """It answers a PING; while it still reads its data it says LOADING instead."""
        try:
            async with asyncio.timeout(_CHECK_TIMEOUT_S):
                return await _ping(*split_address(address)) == b"+PONG\r\n"
        except (OSError, TimeoutError):
            return False

    def processes(self, pid: int) -> tuple[int, ...]:
        """The server; children that rewrite its file come and go."""
        return (pid,)

    def clean(self) -> None:
        """Nothing stays."""


async def _ping(host: str, port: int) -> bytes:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(b"PING\r\n")
        return await reader.readline()
    finally:
        writer.transport.abort()
