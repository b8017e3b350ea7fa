"""What a flush takes away, and what comes back."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from chaos.faults.cache_flush import CacheFlush
from chaos.faults.fault import CannotInject, RevertFailed
from chaos.inventory import Target
from chaos.testing.clock import run_virtual
from chaos.testing.host import InMemoryHost
from chaos.testing.redis import FULL

FLUSH = CacheFlush()


def in_world(story: Callable[[InMemoryHost, Target], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        world = InMemoryHost()
        return await story(world, world.add_target("cache", "cache", wire="redis"))

    return run_virtual(main)


def test_everything_is_gone_at_once_and_comes_back_with_the_revert() -> None:
    async def story(world: InMemoryHost, cache: Target) -> None:
        undo = await FLUSH.prepare((cache,), world.host)
        await FLUSH.inject((cache,), undo, world.host)
        assert world.redis.databases("cache")[0] == {}
        seen = await FLUSH.confirm((cache,), undo, world.host)
        assert seen.what == "cache: 4 entries and our mark are in database 15, 0 in database 0"
        await FLUSH.revert(undo, world.host)
        assert world.redis.databases("cache") == {0: FULL, 15: {}}

    in_world(story)


def test_what_was_written_anew_is_newer_than_what_comes_back() -> None:
    async def story(world: InMemoryHost, cache: Target) -> None:
        undo = await FLUSH.prepare((cache,), world.host)
        await FLUSH.inject((cache,), undo, world.host)
        world.redis.databases("cache")[0]["answer:1"] = "fresh"
        await FLUSH.revert(undo, world.host)
        assert world.redis.databases("cache") == {0: {**FULL, "answer:1": "fresh"}, 15: {}}

    in_world(story)


def test_two_flushes_of_one_cache_revert_in_any_order() -> None:
    async def story(world: InMemoryHost, cache: Target) -> None:
        first = await FLUSH.prepare((cache,), world.host)
        await FLUSH.inject((cache,), first, world.host)
        world.redis.databases("cache")[0]["answer:4"] = "four"
        second = await FLUSH.prepare((cache,), world.host)
        await FLUSH.inject((cache,), second, world.host)
        assert (first["spares"], second["spares"]) == (["15"], ["14"])
        await FLUSH.revert(first, world.host)
        assert (await FLUSH.confirm((cache,), second, world.host)).seen
        await FLUSH.revert(second, world.host)
        assert world.redis.databases("cache")[0] == {**FULL, "answer:4": "four"}

    in_world(story)


def test_an_empty_cache_cannot_be_flushed() -> None:
    async def story(world: InMemoryHost, cache: Target) -> None:
        world.redis.databases("cache")[0].clear()
        with pytest.raises(CannotInject, match="there is nothing to flush; give it load first"):
            await FLUSH.prepare((cache,), world.host)

    in_world(story)


def test_without_an_empty_database_there_is_no_place_for_what_is_flushed() -> None:
    async def story(world: InMemoryHost, cache: Target) -> None:
        world.redis.databases("cache").update({number: {"k": "v"} for number in range(1, 16)})
        with pytest.raises(CannotInject, match="all its databases are in use"):
            await FLUSH.prepare((cache,), world.host)

    in_world(story)


def test_a_dead_cache_is_named_before_anything_is_touched_and_its_data_waits_for_the_revert() -> None:
    async def story(world: InMemoryHost, cache: Target) -> None:
        undo = await FLUSH.prepare((cache,), world.host)
        await FLUSH.inject((cache,), undo, world.host)
        await world.host.http.call("POST", f"unix://{world.supervisor.socket}:/targets/cache/hold", {"by": "test"})
        world.processes.signal(world.processes.identify(cache.pids[0]), signal.SIGKILL)
        with pytest.raises(RevertFailed, match=r"by hand, when it is up: valkey-cli -h 127.0.0.1 -p 41001 swapdb 0 15"):
            await FLUSH.revert(undo, world.host)
        assert not (await FLUSH.confirm_gone((cache,), undo, world.host)).seen
        with pytest.raises(CannotInject, match="does not answer"):
            await FLUSH.prepare((cache,), world.host)

    in_world(story)


def test_only_what_speaks_the_redis_protocol_can_be_flushed() -> None:
    async def story(world: InMemoryHost, cache: Target) -> None:
        assert FLUSH.problems((cache,)) == ()
        wanted = "tools: it speaks http, not the Redis protocol; choose a target of role cache"
        assert FLUSH.problems((world.add_target("tools", "tool"),)) == (wanted,)

    in_world(story)
