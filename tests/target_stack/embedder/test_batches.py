"""Whose texts are computed next."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from target_stack.embedder.batches import MOST_CHARACTERS, MOST_TEXTS, FairBatches
from target_stack.embedder.embedding import Embedded
from target_stack.embedder.worker import Worker


def all_batches(requests: list[list[str]]) -> list[list[tuple[int, int, str]]]:
    line: FairBatches[int] = FairBatches()
    for number, texts in enumerate(requests):
        line.add(number, texts)
    return list(iter(line.take, []))


def test_a_question_does_not_wait_behind_a_request_with_many_texts():
    first, *_ = all_batches([[f"text {n}" for n in range(200)], ["a question"]])
    assert (1, 0, "a question") in first


@given(st.lists(st.lists(st.integers(1, 2 * MOST_CHARACTERS).map("x".__mul__), min_size=1, max_size=20), max_size=6))
def test_every_text_is_taken_once_in_batches_that_are_small_or_single(requests):
    batches = all_batches(requests)
    taken = Counter((number, place, text) for batch in batches for number, place, text in batch)
    assert taken == Counter((n, p, text) for n, texts in enumerate(requests) for p, text in enumerate(texts))
    for batch in batches:
        assert len(batch) <= MOST_TEXTS
        assert len(batch) == 1 or sum(len(text) for _, _, text in batch) <= MOST_CHARACTERS


class Counting:
    """An embedder that shows what it was given at once, and breaks on demand."""

    name = fingerprint = "counting"

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def embed(self, texts: Sequence[str]) -> list[Embedded]:
        self.batches.append(list(texts))
        if "break" in texts:
            raise RuntimeError("broken")
        return [Embedded((float(len(text)),), 1) for text in texts]


def run(work):
    async def main():
        embedder = Counting()
        worker = Worker(embedder)
        try:
            return await work(worker), embedder.batches
        finally:
            worker.close()

    return asyncio.run(main())


def test_requests_at_the_same_time_share_a_batch_and_each_gets_its_own_back():
    async def work(worker):
        return await asyncio.gather(*(worker.embed(["x" * n, "y" * 10 * n]) for n in range(1, 5)))

    results, batches = run(work)
    assert [[one.vector[0] for one in result] for result in results] == [[n, 10 * n] for n in range(1, 5)]
    assert len(batches) == 1


def test_a_request_that_leaves_takes_its_waiting_texts_along():
    async def work(worker):
        leaver = asyncio.create_task(worker.embed([f"z{n}" for n in range(100)]))
        await asyncio.sleep(0)
        leaver.cancel()
        await asyncio.wait({leaver})
        return await worker.embed(["next"])

    _, batches = run(work)
    assert sum(text.startswith("z") for batch in batches for text in batch) <= 2 * MOST_TEXTS


def test_what_was_computed_for_somebody_who_left_is_kept_for_the_next_one():
    async def work(worker):
        leaver = asyncio.create_task(worker.embed(["slow"]))
        for _ in range(3):  # joins the line, the work begins, the batch is taken
            await asyncio.sleep(0)
        leaver.cancel()
        await asyncio.wait(asyncio.all_tasks() - {asyncio.current_task()})
        return await worker.embed(["slow"])

    (slow,), batches = run(work)
    assert (slow.vector, batches) == ((4.0,), [["slow"]])


def test_a_text_is_computed_once_while_it_is_among_the_last_ones():
    async def work(worker):
        await worker.embed(["same", "same", "other"])
        await worker.embed(["same"])
        for n in range(0, 600, 100):
            await worker.embed([f"new {n + i}" for i in range(100)])
        return await worker.embed(["same"])

    (same,), batches = run(work)
    assert same.vector == (4.0,)
    assert sum(batch.count("same") for batch in batches) == 2


def test_a_model_that_breaks_fails_those_of_its_batch_and_nobody_after():
    async def work(worker):
        with pytest.raises(RuntimeError, match="broken"):
            await worker.embed(["break"])
        return await worker.embed(["whole"])

    assert run(work)[0][0].vector == (5.0,)
