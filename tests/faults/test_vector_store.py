"""Faults in the data and the settings of a vector store, in memory."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from chaos.faults.fault import CannotInject, RevertFailed
from chaos.faults.vector_store_empty import VectorStoreEmpty
from chaos.faults.vector_store_partial import VectorStorePartial
from chaos.faults.vector_store_read_only import VectorStoreReadOnly
from chaos.faults.vector_store_slow import VectorStoreSlow
from chaos.faults.vector_store_stale import VectorStoreStale
from chaos.inventory import Target
from chaos.testing.clock import run_virtual
from chaos.testing.host import InMemoryHost
from chaos.testing.postgres import DOCUMENTS
from chaos.units import Ratio

EMPTY = VectorStoreEmpty()


def in_world(story: Callable[[InMemoryHost, Target], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        world = InMemoryHost()
        return await story(world, world.add_target("vector-store", "vector-store", wire="postgres"))

    return run_virtual(main)


def rows(world: InMemoryHost) -> list[str]:
    found = world.postgres.database("vector-store").sqlite.execute("SELECT id FROM documents ORDER BY rowid")
    return [row[0] for row in found]


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


def test_a_table_that_another_fault_stands_in_for_is_left_alone() -> None:
    async def story(world: InMemoryHost, store: Target) -> None:
        slow, undo = VectorStoreSlow(), await EMPTY.prepare((store,), world.host)
        first = await slow.prepare((store,), world.host)
        await slow.inject((store,), first, world.host)
        with pytest.raises(CannotInject, match="documents is a view and no table; if another fault stands"):
            await EMPTY.prepare((store,), world.host)
        with pytest.raises(CannotInject, match="documents is a view and no table; if another fault stands"):
            await EMPTY.inject((store,), undo, world.host)
        await EMPTY.revert(undo, world.host)
        assert (await slow.confirm((store,), first, world.host)).seen
        await slow.revert(first, world.host)
        assert rows(world) == list(DOCUMENTS)

    in_world(story)


def test_a_read_only_store_gives_its_tables_back_all_the_same() -> None:
    async def story(world: InMemoryHost, store: Target) -> None:
        undo, frozen = await EMPTY.prepare((store,), world.host), VectorStoreReadOnly()
        await EMPTY.inject((store,), undo, world.host)
        await frozen.inject((store,), await frozen.prepare((store,), world.host), world.host)
        await EMPTY.revert(undo, world.host)
        assert rows(world) == list(DOCUMENTS)
        with pytest.raises(CannotInject, match="default_transaction_read_only is set already"):
            await frozen.prepare((store,), world.host)

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


def test_a_partial_loss_of_all_or_nothing_is_refused() -> None:
    async def story(world: InMemoryHost, store: Target) -> None:
        with pytest.raises(CannotInject, match=r"10% of its 3 rows is all or nothing"):
            await VectorStorePartial(missing=Ratio(0.1)).prepare((store,), world.host)
        assert "all or nothing; choose a share in between" in VectorStorePartial(missing=Ratio(1)).problems((store,))[0]

    in_world(story)


def test_texts_without_numbers_or_without_a_column_cannot_become_outdated() -> None:
    async def story(world: InMemoryHost, store: Target) -> None:
        with pytest.raises(CannotInject, match=r"no look at the texts in documents\.words"):
            await VectorStoreStale(column="words").prepare((store,), world.host)
        with pytest.raises(CannotInject, match=r"no text in documents\.id holds a number"):
            await VectorStoreStale(column="id").prepare((store,), world.host)

    in_world(story)


def test_an_old_edition_has_other_numbers_and_the_same_words() -> None:
    async def story(world: InMemoryHost, store: Target) -> None:
        undo = await VectorStoreStale().prepare((store,), world.host)
        await VectorStoreStale().inject((store,), undo, world.host)
        found = world.postgres.database("vector-store").sqlite.execute("SELECT * FROM documents WHERE id = 'one'")
        assert found.fetchall() == [("one", "one: 34")]

    in_world(story)


def test_only_postgres_and_plain_names_are_accepted() -> None:
    http = Target("tools", "tool", None, (), "127.0.0.1:1")
    assert EMPTY.problems((http,)) == (
        "tools: it speaks http, not PostgreSQL's protocol; choose a target of role vector-store",
    )
    store = Target("s", "vector-store", None, (), "127.0.0.1:1", wire="postgres")
    assert "no plain name" in VectorStoreEmpty(table='d"; DROP TABLE x; --').problems((store,))[0]
