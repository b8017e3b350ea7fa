"""Which entries expire together, and what comes back."""

from __future__ import annotations

import pytest

from chaos.faults.cache_stampede import CacheStampede
from chaos.faults.fault import CannotInject
from chaos.testing.clock import run_virtual
from chaos.testing.host import InMemoryHost
from chaos.testing.redis import FULL
from chaos.units import Ratio

OTHERS = {f"index:{number}": "x" for number in range(40)}


def test_the_entries_that_fit_expire_at_once_and_come_back_unless_they_were_written_anew() -> None:
    async def main() -> None:
        world, stampede = InMemoryHost(), CacheStampede(match="answer:*")
        cache = world.add_target("cache", "cache", wire="redis")
        databases = world.redis.databases("cache")
        databases[0].update(OTHERS)
        undo = await stampede.prepare((cache,), world.host)
        await stampede.inject((cache,), undo, world.host)
        assert databases[0] == OTHERS
        assert (await stampede.confirm((cache,), undo, world.host)).seen
        databases[0]["answer:1"] = "fresh"
        await stampede.revert(undo, world.host)
        assert databases == {0: {**FULL, **OTHERS, "answer:1": "fresh"}, 15: {}}

    run_virtual(main)


def test_a_share_of_the_entries_is_the_same_share_every_time() -> None:
    async def main() -> None:
        left = []
        for _ in range(2):
            world, stampede = InMemoryHost(), CacheStampede(match="index:*", share=Ratio(0.5))
            cache = world.add_target("cache", "cache", wire="redis")
            world.redis.databases("cache")[0].update(OTHERS)
            undo = await stampede.prepare((cache,), world.host)
            await stampede.inject((cache,), undo, world.host)
            left.append(set(world.redis.databases("cache")[0]))
        assert left[0] == left[1]
        assert 10 < len(left[0] - set(FULL)) < 30

    run_virtual(main)


def test_where_nothing_fits_nothing_can_expire() -> None:
    async def main() -> None:
        world = InMemoryHost()
        cache = world.add_target("cache", "cache", wire="redis")
        with pytest.raises(CannotInject, match="no entry fits 'session:\\*'; valkey-cli --scan tells what there is"):
            await CacheStampede(match="session:*").prepare((cache,), world.host)

    run_virtual(main)
