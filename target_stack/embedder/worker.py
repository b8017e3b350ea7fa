"""Embeds for all requests at once: one thread computes, the event loop keeps answering.

The last texts keep their vectors, because people ask the same questions: on a machine whose cores are all busy that is
the difference between a millisecond and a missed deadline.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from target_stack.embedder.batches import FairBatches
from target_stack.embedder.embedding import Embedded, Embedder

_KEPT_TEXTS = 512
"""About 6 MB of vectors."""


class _Order:
    """One request: what it has got so far."""

    def __init__(self, size: int) -> None:
        self.results: dict[int, Embedded] = {}
        self.size = size
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def put(self, place: int, result: Embedded) -> None:
        self.results[place] = result
        if len(self.results) == self.size and not self.done.done():
            self.done.set_result(None)

    def fail(self, problem: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(problem)


class Worker:
    """Owns the embedder and its thread. Use it from one event loop."""

    def __init__(self, embedder: Embedder) -> None:
        """Nothing runs before the first request."""
        self._embedder = embedder
        self._line: FairBatches[_Order] = FairBatches()
        self._thread = ThreadPoolExecutor(1, "embedder")
        self._task: asyncio.Task[None] | None = None
        self._kept: OrderedDict[str, Embedded] = OrderedDict()

    async def embed(self, texts: Sequence[str]) -> list[Embedded]:
        """One result a text. A caller that is cancelled takes its waiting texts along. Raises what the model raises."""
        found = {text: self._kept[text] for text in texts if text in self._kept}
        missing = [text for text in dict.fromkeys(texts) if text not in found]
        if missing:
            found |= await self._compute(missing)
        self._keep(found)
        return [found[text] for text in texts]

    def _keep(self, found: Mapping[str, Embedded]) -> None:
        self._kept |= found
        for text in found:
            self._kept.move_to_end(text)
        while len(self._kept) > _KEPT_TEXTS:
            self._kept.popitem(last=False)

    async def _compute(self, texts: Sequence[str]) -> dict[str, Embedded]:
        order = _Order(len(texts))
        self._line.add(order, texts)
        if self._task is None:
            self._task = asyncio.create_task(self._work())
        try:
            await order.done
        finally:
            self._line.remove(order)
        return {text: order.results[place] for place, text in enumerate(texts)}

    def close(self) -> None:
        """Let the thread go."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _work(self) -> None:
        try:
            while batch := self._line.take():
                await self._one(batch)
        finally:
            self._task = None

    async def _one(self, batch: list[tuple[_Order, int, str]]) -> None:
        texts = [text for _, _, text in batch]
        try:
            results = await asyncio.get_running_loop().run_in_executor(self._thread, self._embedder.embed, texts)
        except Exception as problem:  # noqa: BLE001  # whatever the model raises belongs to those who asked
            for order, _, _ in batch:
                order.fail(problem)
            return
        # Kept for those who left too: whoever ran out of time will ask again.
        self._keep(dict(zip(texts, results, strict=True)))
        for (order, place, _), result in zip(batch, results, strict=True):
            order.put(place, result)
