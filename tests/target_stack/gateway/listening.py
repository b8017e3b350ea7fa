"""A TCP server in the test's own loop that can be stopped and started on the same port, like one that is killed."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod


class Listening(ABC):
    """Subclasses say what they answer. A stop aborts every connection; connects are refused until the next start."""

    def __init__(self) -> None:
        self.frozen = False
        self.port = 0
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []

    @abstractmethod
    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Talk to one client to the end."""

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, reuse_address=True)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        if self._server:
            self._server.close()
            for writer in self._writers:
                writer.transport.abort()
            self._writers.clear()
            self._server = None

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        await self.serve(reader, writer)
