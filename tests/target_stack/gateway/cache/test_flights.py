"""Flights by themselves: what is not seen from outside."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from target_stack.gateway.cache.flights import Flights, OutOfTime, Served
from target_stack.gateway.sse import Frame


class Scripted:
    """An answer of so many frames, one each tenth of a second; fails with `trouble` after the last."""

    served_by = "engine-a"

    def __init__(self, count: int, trouble: Exception | None = None) -> None:
        self.count, self.trouble = count, trouble

    async def frames(self) -> AsyncIterator[list[Frame]]:
        for number in range(self.count):
            await asyncio.sleep(0.1)
            yield [Frame(str(number).encode())]
        if self.trouble:
            raise self.trouble

    async def close(self) -> None:
        pass


def work(answer: Scripted, opening_s: float = 0.0) -> Any:
    @asynccontextmanager
    async def opened() -> AsyncIterator[Served]:
        await asyncio.sleep(opening_s)
        yield Served(answer, {"x-served-by": answer.served_by})

    return opened


def flights() -> Flights:
    return Flights(lambda: None)


def in_s(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


async def heard(line: Flights, answer: Scripted, deadline: float, opening_s: float = 0.0) -> bytes:
    async with line.join("key", work(answer, opening_s), deadline) as (served, _):
        return b"".join([frame.raw async for batch in served.answer.frames() for frame in batch])


async def test_who_comes_late_hears_all_from_the_beginning() -> None:
    line = flights()
    first = asyncio.create_task(heard(line, Scripted(5), in_s(9)))
    await asyncio.sleep(0.35)
    assert await heard(line, Scripted(0), in_s(9)) == b"01234" == await first


async def test_a_key_is_free_again_when_its_flight_has_landed() -> None:
    line = flights()
    assert await heard(line, Scripted(2), in_s(9)) == b"01"
    await asyncio.sleep(0)
    assert len(line) == 0
    assert await heard(line, Scripted(3), in_s(9)) == b"012"


async def test_out_of_time_before_the_first_news_concerns_one_listener() -> None:
    line = flights()
    patient = asyncio.create_task(heard(line, Scripted(2), in_s(9), opening_s=1.0))
    await asyncio.sleep(0)
    with pytest.raises(OutOfTime):
        await heard(line, Scripted(0), in_s(0.5))
    assert await patient == b"01"


async def test_a_fault_of_ours_ends_every_listener_instead_of_leaving_them_waiting() -> None:
    line = flights()
    asking = [asyncio.create_task(heard(line, Scripted(1, ValueError("ours")), in_s(60))) for _ in range(2)]
    await asyncio.sleep(1.0)
    told = [str(task.exception()) for task in asking]
    assert told == ["the answer was given up"] * 2


async def test_closing_ends_what_is_under_way() -> None:
    line = flights()
    asking = asyncio.create_task(heard(line, Scripted(100), in_s(60)))
    await asyncio.sleep(0.2)
    await line.close()
    await asyncio.wait({asking})
    assert str(asking.exception()) == "the answer was given up"
