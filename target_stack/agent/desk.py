"""What a worker takes from the store and gives back to it, in its own process or over a line from another.

A worker holds a task under a lease. Whoever saves must still hold it, so a process that was frozen for longer than its
lease cannot write over its successor.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from target_stack.agent.task import Task


class LeaseLost(Exception):
    """Somebody else has the task now, or it has ended."""


@dataclass(frozen=True)
class Taken:
    """A task in hand: results of its steps (and what it was given) by step, whether its last holder vanished, and for a
    task that waited: the ends of what it waited for (`phase`, `reference`, `result`), by name.
    """

    task: Task
    known: Mapping[str, Mapping[str, Any]]
    resumed: bool = False
    ends: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """For the line."""
        return {"task": self.task.to_json(), "known": self.known, "resumed": self.resumed, "ends": self.ends}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Taken:
        """What `to_json` gave."""
        return cls(Task.from_json(record["task"]), record["known"], record["resumed"], record["ends"])


@dataclass(frozen=True)
class Note:
    """What is written down with a save: the event in one word, the key of the effect if there is one, why, and the news
    that others may read.
    """

    step: str
    outcome: str
    attempt: int
    key: str = ""
    reason: str = ""
    tool: str = ""
    wait: str = ""


@dataclass(frozen=True)
class Save:
    """One transaction: the task as it is now, what happened, its result with its reference, the task it asks for.

    `waited_for` is what the task waited for until now.
    """

    task: Task
    note: Note
    result: tuple[str, Mapping[str, Any]] | None = None
    child: Task | None = None
    waited_for: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """For the line."""
        return {
            "task": self.task.to_json(),
            "note": dataclasses.asdict(self.note),
            "result": self.result,
            "child": None if self.child is None else self.child.to_json(),
            "waited_for": self.waited_for,
        }

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Save:
        """What `to_json` gave."""
        result, child = record["result"], record["child"]
        return cls(
            Task.from_json(record["task"]),
            Note(**record["note"]),
            None if result is None else (result[0], result[1]),
            None if child is None else Task.from_json(child),
            tuple(record["waited_for"]),
        )


class Desk(Protocol):
    """Where workers meet the store."""

    async def take(self, agent: str) -> Taken | float | None:
        """The next task, under a lease; else the Unix time when one is due, or None."""
        ...

    async def save(self, save: Save) -> bool:
        """Store it durably; whether the task's owner wants it no longer. Raises LeaseLost."""
        ...

    async def renew(self, ids: Sequence[str]) -> None:
        """Hold these tasks for another lease."""
        ...

    async def rest(self, limit_s: float) -> None:
        """Wait until something may have changed, for at most so long."""
        ...
