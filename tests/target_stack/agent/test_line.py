"""The desk over a socket is the same desk, and a frozen reader keeps nobody up."""

from __future__ import annotations

import asyncio
import socket

import pytest

from target_stack.agent.bell import Bell
from target_stack.agent.desk import LeaseLost, Note, Save, Taken
from target_stack.agent.line import LINE_BYTES, LineGone, LocalDesk, RemoteDesk, serve_line


def over_a_line(place, use):
    """Run `use(remote desk, bell)` against the store of a world."""

    async def both_ends():
        ours, theirs = socket.socketpair()
        bell = Bell()
        local = LocalDesk(place.store, bell, lambda: place.now, lambda: place.now)
        here = await asyncio.open_unix_connection(sock=ours, limit=LINE_BYTES)
        there = RemoteDesk(*await asyncio.open_unix_connection(sock=theirs, limit=LINE_BYTES))
        serving = asyncio.create_task(serve_line(local, bell, *here))
        listening = asyncio.create_task(there.listen())
        try:
            return await use(there, bell)
        finally:
            here[1].close()
            with pytest.raises(LineGone):
                await listening
            there._writer.close()
            await serving

    return asyncio.run(both_ends())


def test_a_task_is_taken_saved_renewed_and_lost_over_the_line(world):
    place = world()
    task = place.submit("complaint")

    async def use(desk, bell):
        assert await desk.take("approver") is None
        taken = await desk.take("support")
        assert isinstance(taken, Taken)
        assert taken.task == task
        assert await desk.take("support") == place.now + place.rules.waits.lease_s
        assert await desk.save(Save(task, Note("plan", "resumed", 1))) is False
        await desk.renew(["t-1"])
        place.store.cancel("t-1", place.now, place.now)
        assert await desk.save(Save(task, Note("plan", "resumed", 1))) is True
        with pytest.raises(LeaseLost):
            await desk.save(Save(place.task().__class__.from_json({**task.to_json(), "id": "t-7"}), Note("x", "y", 1)))

    over_a_line(place, use)


def test_a_ring_at_one_end_wakes_who_rests_at_the_other(world):
    async def use(desk, bell):
        resting = asyncio.create_task(desk.rest(60))
        await asyncio.sleep(0)
        bell.ring()
        await asyncio.wait_for(resting, 5)

    over_a_line(world(), use)


def test_rings_for_a_reader_that_does_not_read_are_dropped(world):
    async def flood():
        ours, theirs = socket.socketpair()
        bell = Bell()
        reader, writer = await asyncio.open_unix_connection(sock=ours)
        serving = asyncio.create_task(serve_line(LocalDesk(None, bell, None, None), bell, reader, writer))
        await asyncio.sleep(0)
        for _ in range(100_000):
            bell.ring()
        kept = writer.transport.get_write_buffer_size()
        theirs.close()
        await serving
        return kept

    assert asyncio.run(flood()) < 100
