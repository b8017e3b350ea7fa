"""What the agents tell of themselves: every step, events with exact times, and counts that survive a crash.

All of it is written in the transaction of the change that it tells of, so it is neither ahead of the tasks nor behind.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from target_stack.agent.desk import Note
from target_stack.agent.plans import AGENTS, KINDS
from target_stack.agent.task import Phase, Task, Wait

SCHEMA = """
CREATE TABLE IF NOT EXISTS steps (
    task TEXT NOT NULL, step TEXT NOT NULL, attempt INTEGER NOT NULL, outcome TEXT NOT NULL, key TEXT NOT NULL,
    reason TEXT NOT NULL, wall REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS steps_of ON steps (task);
CREATE TABLE IF NOT EXISTS events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, mono REAL NOT NULL, name TEXT NOT NULL, fields TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS counts (
    name TEXT NOT NULL, labels TEXT NOT NULL, value INTEGER NOT NULL, PRIMARY KEY (name, labels)
);
"""
_KEEP_EVENTS = 4096
_ENDINGS = {"failed": "task_failed", "handed_over": "task_handed_over", "cancelled": "task_cancelled"}


def _countable() -> Iterator[tuple[str, Mapping[str, str]]]:
    yield from (("agent_tasks_resumed_total", {"agent": agent}) for agent in AGENTS)
    yield from (("agent_waits_ran_out_total", {"wait": wait}) for wait in get_args(Wait))
    yield from (
        ("agent_tasks_ended_total", {"kind": kind, "phase": phase})
        for kind in KINDS
        for phase in get_args(Phase)
        if phase != "open"
    )


class Account:
    """The tables of the account in an open database; call it inside the transaction that it tells of."""

    def __init__(self, db: sqlite3.Connection) -> None:
        """Make the tables where they are not there yet. Counts of what can happen begin at zero, so that a reader can
        tell never from unknown.
        """
        self._db = db
        db.executescript(SCHEMA)
        zeros = [(name, json.dumps(labels)) for name, labels in _countable()]
        db.executemany("INSERT OR IGNORE INTO counts VALUES (?, ?, 0)", zeros)

    def write(self, task: Task, note: Note, now: float, mono: float) -> None:
        """What one save tells."""
        row = (task.id, note.step, note.attempt, note.outcome, note.key, note.reason, now)
        self._db.execute("INSERT INTO steps VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        self.count("agent_steps_total", agent=task.agent, step=note.step, outcome=note.outcome)
        if note.tool:
            self.count("agent_tool_calls_total", tool=note.tool, outcome=note.outcome)
        if note.outcome == "resumed":
            self.count("agent_tasks_resumed_total", agent=task.agent)
            self.tell("task_resumed", mono, task=task.id, agent=task.agent, step=note.step)
        if note.wait:
            self.count("agent_waits_ran_out_total", wait=note.wait)
            self.tell("wait_ran_out", mono, task=task.id, agent=task.agent, step=note.step, dependency=note.wait)
        if task.phase != "open":
            self.ended(task, mono)

    def ended(self, task: Task, mono: float) -> None:
        """A task has come to its end; only one that did what was asked passes without an event."""
        self.count("agent_tasks_ended_total", kind=task.kind, phase=task.phase)
        if task.phase in _ENDINGS:
            self.tell(_ENDINGS[task.phase], mono, task=task.id, agent=task.agent, kind=task.kind, reason=task.reason)

    def count(self, name: str, **labels: str) -> None:
        """One more."""
        self._db.execute(
            "INSERT INTO counts VALUES (?, ?, 1) ON CONFLICT DO UPDATE SET value = value + 1",
            (name, json.dumps(labels)),
        )

    def counts(self) -> Iterator[tuple[str, Mapping[str, str], int]]:
        """Every count with its labels, in the order of the names."""
        for name, labels, value in self._db.execute("SELECT name, labels, value FROM counts ORDER BY name, labels"):
            yield name, json.loads(labels), value

    def tell(self, name: str, mono: float, **fields: Any) -> None:
        """An event at monotonic time `mono`."""
        insert = "INSERT INTO events (mono, name, fields) VALUES (?, ?, ?)"
        seq = self._db.execute(insert, (mono, name, json.dumps(fields))).lastrowid or 0
        self._db.execute("DELETE FROM events WHERE seq <= ?", (seq - _KEEP_EVENTS,))

    def events(self, after: int) -> dict[str, Any]:
        """The document of /debug/events?after=N. Numbers go on after a restart."""
        rows = self._db.execute("SELECT seq, mono, name, fields FROM events WHERE seq > ? ORDER BY seq", (after,))
        told = [{"seq": seq, "mono": mono, "name": name, **json.loads(text)} for seq, mono, name, text in rows]
        last = self._db.execute("SELECT coalesce(max(seq), 0) FROM events").fetchone()[0]
        return {"events": told, "last": last}

    def steps(self, task: str) -> list[dict[str, Any]]:
        """All that happened to a task, oldest first."""
        names = ("step", "attempt", "outcome", "key", "reason", "wall")
        query = f"SELECT {', '.join(names)} FROM steps WHERE task = ? ORDER BY rowid"  # noqa: S608  # own column names
        return [dict(zip(names, row, strict=True)) for row in self._db.execute(query, (task,))]
