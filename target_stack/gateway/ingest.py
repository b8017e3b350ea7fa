"""Documents that users add: embedded, written under the request's key, and only then said to be there.

A write whose answer was lost may have been made. It is asked for again because its key makes a second one harmless,
within the deadline and out of the one budget of retries; what still has no answer is reported as failed, and the
client asks again under the same key.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any

from target_stack.gateway.call import Call
from target_stack.gateway.dependency import Dependency, DependencyDown
from target_stack.gateway.errors import bad_request
from target_stack.gateway.policies.ingest import IngestSettings
from target_stack.gateway.repeat import Repeater
from target_stack.gateway.retrieval import HttpService, embed
from target_stack.gateway.vector_store import VectorStoreClient

WRITES = "vector-store-writes"
"""The store as something that is written to: it may take no writes and answer every search."""


class Ingest:
    """The embedder and the store, as one way in."""

    def __init__(
        self,
        embedder: tuple[Dependency, HttpService],
        store: tuple[Dependency, VectorStoreClient],
        repeater: Repeater,
        settings: IngestSettings,
    ) -> None:
        self._embedder = embedder
        self.store, self._client = store
        self._repeater = repeater
        self._settings = settings
        self._under_way: set[asyncio.Task[None]] = set()

    async def add(self, call: Call, fields: dict[str, Any], key: str) -> tuple[int, Any]:
        """Status and JSON of the answer: 200, or 409 where another text came under this key before. Raises
        DependencyDown, GatewayError.
        """
        text = fields.get("text")
        if not isinstance(text, str) or not 0 < len(text.strip()) <= self._settings.text_most:
            raise bad_request(f"text must be a text of 1 to {self._settings.text_most} characters", "text")
        _, vector = await embed(self._embedder, text, call, call.deadline)
        if self._settings.acknowledge == "accepted":
            self._later(call, key, text, vector)
            return 200, {"id": key, "status": "accepted"}
        if not await self._write(call, key, text, vector):
            return 409, {"id": key, "status": "conflict"}
        return 200, {"id": key, "status": "stored"}

    async def _write(self, call: Call, key: str, text: str, vector: list[float]) -> bool:
        def once(hop: Call) -> Awaitable[bool]:
            return self._client.store(key, text, vector, hop.place().comment())

        return await self._repeater.call(self.store, call, once, idempotent=True)

    def _later(self, call: Call, key: str, text: str, vector: list[float]) -> None:
        async def write() -> None:
            with suppress(DependencyDown):
                await self._write(call, key, text, vector)

        task = asyncio.create_task(write())
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def close(self) -> None:
        """Let go of what is still under way."""
        tasks = tuple(self._under_way)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
