"""A store that answers at once and finds nothing, in memory."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from chaos.faults.fault import CannotInject, RevertFailed
from chaos.faults.vector_store_empty import VectorStoreEmpty
from chaos.inventory import Target
from chaos.testing.clock import run_virtual
from chaos.testing.host import InMemoryHost
from chaos.testing.postgres import DOCUMENTS

EMPTY = VectorStoreEmpty()


def in_world(story: Callable[[InMemoryHost, Target], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        world = InMemoryHost()
        return await story(world, world.add_target("vector-store", "vector-store", wire="postgres"))

    return run_virtual(main)


def rows(world: InMemoryHost) -> list[str]:
    return [
        row[0] for row in world.postgres.database("vector-store").execute("SELECT id FROM documents ORDER BY rowid")
    ]


def test_the_rows_are_gone_at_once_and_come_back_whole() -> None:
    async def story(world: InMemoryHost, store: Target) -> None:
        undo = await EMPTY.prepare((store,), world.host)
        await EMPTY.inject((store,), undo, world.host)
        assert rows(world) == []
        seen = await EMPTY.confirm((store,), undo, world.host)
        assert (seen.seen, seen.what) == (True, "vector-store: no rows in documents, 3 rows under our mark")
        await EMPTY.revert(undo, world.host)
        gone = await EMPTY.confirm_gone((store,), undo, world.host)
        assert (gone.seen, gone.what) == (True, "vector-store: 3 rows in documents, nothing under our mark")
        assert rows(world) == list(DOCUMENTS)

    in_world(story)


def test_a_table_that_is_empty_already_cannot_be_emptied() -> None:
    async def story(world: InMemoryHost, store: Target) -> None:
        undo = await EMPTY.prepare((store,), world.host)
        await EMPTY.inject((store,), undo, world.host)
        with pytest.raises(CannotInject, match="documents is empty or not there: nothing to take away"):
            await EMPTY.prepare((store,), world.host)
        with pytest.raises(CannotInject, match="nothing to take away"):
            await VectorStoreEmpty(table="elsewhere").prepare((store,), world.host)

    in_world(story)


def test_rows_that_came_meanwhile_are_never_dropped() -> None:
    async def story(world: InMemoryHost, store: Target) -> None:
        undo = await EMPTY.prepare((store,), world.host)
        await EMPTY.inject((store,), undo, world.host)
        world.postgres.database("vector-store").execute("INSERT INTO documents VALUES ('new')")
        with pytest.raises(RevertFailed, match="1 rows were written into the empty documents meanwhile"):
            await EMPTY.revert(undo, world.host)
        assert rows(world) == ["new"]

    in_world(story)


def test_a_dead_store_keeps_the_harm_and_the_revert_says_what_to_do() -> None:
    async def story(world: InMemoryHost, store: Target) -> None:
        undo = await EMPTY.prepare((store,), world.host)
        await EMPTY.inject((store,), undo, world.host)
        leader = world.processes.identify(store.pids[0])
        assert leader
        world.processes.signal(leader, signal.SIGSTOP)
        with pytest.raises(RevertFailed, match=r"by hand, when it is up: psql -h 127\.0\.0\.1 -p 41001 -U postgres"):
            await EMPTY.revert(undo, world.host)
        assert not (await EMPTY.confirm_gone((store,), undo, world.host)).seen
        world.processes.signal(leader, signal.SIGCONT)
        await EMPTY.revert(undo, world.host)
        assert rows(world) == list(DOCUMENTS)

    in_world(story)


def test_only_postgres_and_plain_names_are_accepted() -> None:
    http = Target("tools", "tool", None, (), "127.0.0.1:1")
    assert EMPTY.problems((http,)) == (
        "tools: it speaks http, not PostgreSQL's protocol; choose a target of role vector-store",
    )
    store = Target("s", "vector-store", None, (), "127.0.0.1:1", wire="postgres")
    assert "no plain name" in VectorStoreEmpty(table='d"; DROP TABLE x; --').problems((store,))[0]
