"""The desk in the store's own process, and the same desk at the other end of a socket, for an agent in a process apart.

    {"id": 7, "do": "take", "with": ...} ──►          ◄── {"id": 7, "gives": ...} or {"id": 7, "lost": true}
                                                       ◄── {"ring": true}

Only one process touches the file. An agent that is frozen holds no lock and keeps nobody up: its replies wait in the
socket, and rings are dropped while it does not read.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from target_stack.agent.bell import Bell
from target_stack.agent.desk import Desk, LeaseLost, Save, Taken
from target_stack.agent.store import TaskStore

LINE_BYTES = 1 << 20
Clock = Callable[[], float]


class LocalDesk:
    """The store, with the bell rung where a save gives somebody else something to do."""

    def __init__(self, store: TaskStore, bell: Bell, wall: Clock, mono: Clock) -> None:
        """`wall` is Unix time, `mono` CLOCK_MONOTONIC, both in seconds."""
        self._store, self._bell, self._wall, self._mono = store, bell, wall, mono

    async def take(self, agent: str) -> Taken | float | None:
        """See Desk."""
        return self._store.take(agent, self._wall())

    async def save(self, save: Save) -> bool:
        """See Desk."""
        now = self._wall()
        unwanted = self._store.save(save, now, self._mono())
        if save.task.phase != "open" or save.task.waits_for or save.task.not_before > now:
            self._bell.ring()
        return unwanted

    async def renew(self, ids: Sequence[str]) -> None:
        """See Desk."""
        self._store.renew(ids, self._wall())

    async def rest(self, limit_s: float) -> None:
        """See Desk."""
        await self._bell.wait(limit_s)


async def serve_line(desk: Desk, bell: Bell, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the other end until it is gone."""

    def carry() -> None:
        if writer.transport.get_write_buffer_size() == 0:
            _write(writer, {"ring": True})

    bell.also.append(carry)
    try:
        while asked := await reader.readline():
            _write(writer, await _answered(desk, json.loads(asked)))
    except ConnectionError:
        pass
    finally:
        bell.also.remove(carry)
        writer.close()


async def _answered(desk: Desk, asked: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return {"id": asked["id"], "gives": await _done(desk, asked["do"], asked["with"])}
    except LeaseLost:
        return {"id": asked["id"], "lost": True}


async def _done(desk: Desk, what: str, given: Any) -> Any:
    if what == "take":
        taken = await desk.take(given)
        return {"taken": taken.to_json()} if isinstance(taken, Taken) else {"next_due": taken}
    if what == "save":
        return await desk.save(Save.from_json(given))
    return await desk.renew(given)


def _write(writer: asyncio.StreamWriter, record: Mapping[str, Any]) -> None:
    writer.write(json.dumps(record).encode() + b"\n")


class LineGone(Exception):
    """The process with the store has ended."""


class RemoteDesk:
    """The desk as seen from the other end. `listen` runs beside the worker and ends with the line."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take over a connected line."""
        self._reader, self._writer = reader, writer
        self._bell = Bell()
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._last = 0

    async def listen(self) -> None:
        """Hear answers and rings until the other end is gone. Raises LineGone."""
        while heard := await self._reader.readline():
            record = json.loads(heard)
            if "ring" in record:
                self._bell.ring()
                continue
            answer = self._asked.pop(record["id"])
            if answer.done():
                continue
            if record.get("lost"):
                answer.set_exception(LeaseLost("by somebody else"))
            else:
                answer.set_result(record["gives"])
        raise LineGone("the line to the store is closed")

    async def _ask(self, what: str, given: Any) -> Any:
        self._last += 1
        answer = self._asked[self._last] = asyncio.get_running_loop().create_future()
        _write(self._writer, {"id": self._last, "do": what, "with": given})
        return await answer

    async def take(self, agent: str) -> Taken | float | None:
        """See Desk."""
        given = await self._ask("take", agent)
        if "taken" in given:
            return Taken.from_json(given["taken"])
        due: float | None = given["next_due"]
        return due

    async def save(self, save: Save) -> bool:
        """See Desk."""
        return bool(await self._ask("save", save.to_json()))

    async def renew(self, ids: Sequence[str]) -> None:
        """See Desk."""
        await self._ask("renew", list(ids))

    async def rest(self, limit_s: float) -> None:
        """See Desk."""
        await self._bell.wait(limit_s)
