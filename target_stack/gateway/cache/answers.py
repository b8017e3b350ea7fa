"""The cache of answers: look for this very question, then for one that means the same; keep what came out whole.

A soft dependency. Whatever is wrong with it costs a request at most its small time limit, and after a few failures
nothing at all, because its breaker is open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from target_stack.gateway.cache.client import CacheClient
from target_stack.gateway.cache.index import Entry, VectorIndex, unit
from target_stack.gateway.cache.kept import KeptAnswer, Record
from target_stack.gateway.call import Call
from target_stack.gateway.dependency import CallFailed, Dependency, DependencyDown
from target_stack.gateway.policies.caching import CacheSettings, Identity, is_keepable, lifetime_s, telling_words
from target_stack.gateway.policies.deadline import Deadline
from target_stack.gateway.policies.settings import DeadlineSettings
from target_stack.gateway.retrieval import HttpService, embed
from target_stack.gateway.telemetry import Telemetry

Result = Literal["hit", "semantic", "miss", "error"]
_ALL = "answer:*"


@dataclass(frozen=True)
class Looked:
    """What a look brought. `entry` is the question's place in the index, where it could be embedded."""

    result: Result
    answer: KeptAnswer | None = None
    entry: Entry | None = None


class AnswerCache:
    """Joins Valkey, the embedder and the index."""

    def __init__(
        self,
        store: tuple[Dependency, CacheClient],
        embedder: tuple[Dependency, HttpService] | None,
        settings: CacheSettings,
        limits: DeadlineSettings,
        telemetry: Telemetry,
    ) -> None:
        self.store, self._client = store
        self._embedder = embedder
        self._settings = settings
        self._limits = limits
        self._telemetry = telemetry
        self._index = VectorIndex(settings.index_size)

    async def look(self, identity: Identity, call: Call) -> Looked:
        """The answer to this very question, else to one that means the same. Never raises."""
        return await self._look(identity, call, self._settings.similar)

    async def look_in_need(self, identity: Identity, call: Call) -> KeptAnswer | None:
        """Any answer that is better than the fixed text. Never raises."""
        return (await self._look(identity, call, self._settings.similar_in_need)).answer

    async def keep(self, identity: Identity, record: Record, call: Call) -> None:
        """Keep a whole, undegraded answer. Never raises: an answer that was not kept is made again."""
        deadline = Deadline.of(self._telemetry.clock(), self._settings.call_s)
        try:
            await self.store.call(
                call.by(deadline), lambda _: self._client.put(identity.key, record.to_bytes(), record.lifetime_s)
            )
        except DependencyDown:
            return
        if record.entry:
            self._index.add(identity.key, record.entry)

    def record(self, reply: Mapping[str, Any], documents: str | None, entry: Entry | None) -> Record | None:
        """What to keep of a reply; None when it is not worth it."""
        if not is_keepable(reply):
            return None
        return Record(reply, documents, lifetime_s(self._settings, self._telemetry.rng), entry)

    async def refresh(self) -> None:
        """Learn what others have kept, and what was kept before we started. Raises CallFailed."""
        unknown = [key async for key in self._client.keys(_ALL) if key not in self._index]
        unknown = unknown[: self._settings.index_size]
        for key, value in zip(unknown, await self._client.values(unknown) if unknown else (), strict=True):
            record = Record.from_bytes(value) if value else None
            if record and record.entry:
                self._index.add(key, record.entry)

    async def keep_fresh(self) -> None:
        """Refresh the index now and then, until cancelled. A cache that is away is asked again later."""
        while True:
            try:
                async with asyncio.timeout(self._settings.index_refresh_s):
                    await self.refresh()
            except (CallFailed, TimeoutError):
                pass  # requests find out by themselves, and their breaker tells
            await asyncio.sleep(self._settings.index_refresh_s)

    async def _look(self, identity: Identity, call: Call, least: float) -> Looked:
        try:
            exact = await self._get(identity.key, call)
        except DependencyDown:
            return Looked("error")
        if exact:
            return Looked("hit", exact)
        entry = await self._entry(identity, call)
        near = entry and self._index.nearest(entry, least)
        if not near:
            return Looked("miss", entry=entry)
        try:
            answer = await self._get(near[0], call)
        except DependencyDown:
            return Looked("error", entry=entry)
        if answer is None:
            self._index.forget(near[0])
        return Looked("semantic" if answer else "miss", answer, entry)

    async def _get(self, key: str, call: Call) -> KeptAnswer | None:
        found = await self.store.call(call, lambda _: self._client.get(key))
        record = Record.from_bytes(found[0]) if found else None
        if not found or not record:
            return None
        return KeptAnswer(record, max(0.0, record.lifetime_s - found[1]))

    async def _entry(self, identity: Identity, call: Call) -> Entry | None:
        """The question's place in the index; None when the embedder does not give it in time."""
        if self._embedder is None:
            return None
        deadline = call.deadline.within(self._telemetry.clock(), self._limits.embedder_s)
        try:
            name, numbers = await embed(self._embedder, identity.question, call, deadline)
        except DependencyDown:
            return None
        return Entry(identity.scope, name, unit(numbers), telling_words(identity.question))
