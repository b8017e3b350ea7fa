"""Documents for a question: embed it, look up its neighbours. A soft dependency with a small time budget of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import aiohttp

from target_stack.gateway.call import Call
from target_stack.gateway.dependency import CallFailed, Dependency, DependencyDown
from target_stack.gateway.events import Clock
from target_stack.gateway.policies.backoff import asked_pause_s
from target_stack.gateway.policies.deadline import Deadline
from target_stack.gateway.policies.settings import DeadlineSettings
from target_stack.gateway.vector_store import Document, VectorStoreClient

_DOCUMENTS = 3


class HttpService:
    """JSON over HTTP to one service. `resends` is how often this client sends again by itself: see EngineClient."""

    def __init__(
        self,
        url: str,
        session: aiohttp.ClientSession,
        clock: Clock,
        *,
        resends: int = 0,
        on_resend: Callable[[Call], None] = lambda _call: None,
    ) -> None:
        self._resends = resends
        self._on_resend = on_resend
        self._url = url
        self._session = session
        self._clock = clock

    async def post(self, path: str, body: Any, call: Call, key: str | None = None) -> tuple[int, Any]:
        """Status and JSON of the reply; `key` makes resends harmless. Raises CallFailed for 5xx, for no reply, and for
        one that is no JSON.
        """
        for _ in range(self._resends):
            try:
                return await self._post(path, body, call, key)
            except CallFailed:
                self._on_resend(call)
        return await self._post(path, body, call, key)

    async def _post(self, path: str, body: Any, call: Call, key: str | None) -> tuple[int, Any]:
        headers = call.headers(self._clock()) | ({"idempotency-key": key} if key else {})
        try:
            async with self._session.post(f"{self._url}{path}", json=body, headers=headers) as reply:
                if reply.status >= 500:
                    raise CallFailed(f"status_{reply.status}", asked_pause_s(reply.headers.get("Retry-After")))
                return reply.status, await reply.json(content_type=None)
        except (aiohttp.ClientError, OSError) as problem:
            raise CallFailed("unreachable") from problem
        except ValueError as problem:
            raise CallFailed("malformed_reply") from problem


async def embed(
    embedder: tuple[Dependency, HttpService], question: str, call: Call, deadline: Deadline
) -> tuple[str, list[float]]:
    """The embedder's name for its model, and the question's vector. Raises DependencyDown."""
    dependency, http = embedder
    return await dependency.call(call.by(deadline), lambda hop: _embed(http, question, hop))


async def _embed(http: HttpService, question: str, call: Call) -> tuple[str, list[float]]:
    status, reply = await http.post("/v1/embeddings", {"input": [question]}, call)
    if status != 200:
        raise CallFailed(f"status_{status}")
    try:
        vector = [float(number) for number in reply["data"][0]["embedding"]]
    except (LookupError, TypeError, ValueError) as problem:
        raise CallFailed("malformed_reply") from problem
    return str(reply.get("model")), vector


class Retrieval:
    """Embedder and vector store as one question, each with its own limit inside one for both."""

    def __init__(
        self,
        embedder: tuple[Dependency, HttpService],
        vector_store: tuple[Dependency, VectorStoreClient],
        *,
        limits: DeadlineSettings,
        clock: Clock,
    ) -> None:
        self._embedder = embedder
        self.store, self._store_client = vector_store
        self._limits = limits
        self._clock = clock

    async def documents(self, question: str, call: Call, known: list[float] | None = None) -> list[Document]:
        """The nearest documents, nearest first; `known` is the question's vector if there is one. Raises
        DependencyDown.
        """
        now = self._clock()
        deadline = call.deadline.within(now, self._limits.retrieval_s)
        embedded_by = deadline.within(now, self._limits.embedder_s)
        vector = known or (await embed(self._embedder, question, call, embedded_by))[1]
        return await self.store.call(call.by(deadline), lambda hop: self._search(vector, hop))

    async def _search(self, vector: list[float], call: Call) -> list[Document]:
        left_s = call.deadline.remaining(self._clock())
        found = await self._store_client.search(vector, _DOCUMENTS, call.place().comment(), left_s)
        if not found:
            raise CallFailed("no_documents")
        return found


class NoRetrieval:
    """Stands where no embedder or vector store is configured."""

    async def documents(self, question: str, call: Call, known: list[float] | None = None) -> list[Document]:  # noqa: ARG002  # the shape of Retrieval
        """Raises DependencyDown always."""
        raise DependencyDown("vector-store", "not_configured")
