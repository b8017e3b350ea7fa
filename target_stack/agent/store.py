"""The agents' memory: tasks, their results and the account of every step, in one SQLite file.

One process writes it, so a frozen one can never hold its lock. Everything that belongs together is one transaction: a
task is never there without the step that led to it, nor the step without the task that it asked for. SQLite's WAL
survives the death of any process; accepting a task is synced to disk as well, so it survives the machine's.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from target_stack.agent.account import Account
from target_stack.agent.desk import LeaseLost, Save, Taken
from target_stack.agent.machine import ended
from target_stack.agent.queueing import Waiting, choose, circle, next_due
from target_stack.agent.settings import AgentSettings
from target_stack.agent.task import Task
from target_stack.storage_check import check_storage
from target_stack.transactions import transaction

_SCHEMA = """
CREATE TABLE IF NOT EXISTS tasks (
    id TEXT PRIMARY KEY, key TEXT NOT NULL UNIQUE, agent TEXT NOT NULL, kind TEXT NOT NULL, phase TEXT NOT NULL,
    priority INTEGER NOT NULL, created REAL NOT NULL, deadline REAL NOT NULL, not_before REAL NOT NULL,
    waits_for TEXT NOT NULL, wait_until REAL, asked_by TEXT, owner TEXT, lease_until REAL,
    cancel_asked INTEGER NOT NULL DEFAULT 0, body TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS open_tasks ON tasks (agent, lease_until) WHERE phase = 'open';
CREATE INDEX IF NOT EXISTS ended_tasks ON tasks (created) WHERE phase <> 'open';
CREATE TABLE IF NOT EXISTS results (reference TEXT PRIMARY KEY, task TEXT NOT NULL, body TEXT NOT NULL);
"""
_KEEP_ENDED = 5000
_IDLE = """
SELECT id, priority, created, deadline, not_before, waits_for, wait_until FROM tasks
WHERE phase = 'open' AND agent = ? AND coalesce(lease_until, 0) <= ?
"""
_INSERT = """
INSERT OR IGNORE INTO tasks
    (id, key, agent, kind, phase, priority, created, deadline, not_before, waits_for, wait_until, asked_by, body)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_STANDING = """
SELECT agent, CASE WHEN phase <> 'open' THEN phase WHEN lease_until > ? THEN 'running'
    WHEN waits_for <> '[]' THEN 'waiting' ELSE 'queued' END AS state, count(*)
FROM tasks GROUP BY agent, state
"""
_OLD = "(SELECT id FROM tasks WHERE phase <> 'open' ORDER BY created DESC LIMIT -1 OFFSET ?)"


class Conflict(Exception):
    """The key belongs to a task that asks for something else."""


class Circle(Exception):
    """The task would wait for itself; the message names the way."""


class Full(Exception):
    """There are as many open tasks as there may be."""


class TaskStore:
    """One open database. `life` counts how often it was opened; leases carry it, so that a successor knows them."""

    def __init__(self, path: Path | None, rules: AgentSettings) -> None:
        """Open or make the file, or keep all in memory without one. Raises sqlite3.Error.

        No other process may have it open: every lease in it is a dead one's, and its task is due at once.
        """
        self._db = sqlite3.connect(path or ":memory:", isolation_level=None)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.executescript(_SCHEMA)
        self._sync("NORMAL")
        self.account = Account(self._db)
        self.life = self._db.execute("PRAGMA user_version").fetchone()[0] + 1
        self._db.execute(f"PRAGMA user_version = {self.life}")
        self._db.execute("UPDATE tasks SET lease_until = 0 WHERE lease_until IS NOT NULL")
        self._owner, self._rules = str(self.life), rules

    def _sync(self, mode: str) -> None:
        self._db.execute(f"PRAGMA synchronous={mode}")

    def check(self) -> tuple[int, dict[str, Any]]:
        """Whether the file takes a write: see storage_check."""
        return check_storage(self._db)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    # Submitting.

    def submit(self, task: Task) -> Task:
        """The task of this key: stored now and on disk, or as it was stored before. Raises Conflict, Circle, Full."""
        known = self.find(task.key)
        if known is not None:
            if (known.kind, known.goal) != (task.kind, task.goal):
                raise Conflict(f"the key {task.key} belongs to another task")
            return known
        self._must_end(task)
        if (
            self._db.execute("SELECT count(*) FROM tasks WHERE phase = 'open'").fetchone()[0]
            >= self._rules.queue.most_open
        ):
            raise Full(f"{self._rules.queue.most_open} tasks are open")
        self._sync("FULL")
        try:
            with transaction(self._db):
                self._insert(task)
                self._prune()
        finally:
            self._sync("NORMAL")
        return task

    def _must_end(self, task: Task) -> None:
        way = circle(task.depends_on, self._waits_of, (task.id, task.key))
        if way:
            raise Circle(f"the task would wait for itself: {' waits for '.join((task.key, *way))}")

    def _waits_of(self, name: str) -> Sequence[str]:
        row = self._db.execute(
            "SELECT waits_for FROM tasks WHERE (id = ? OR key = ?) AND phase = 'open'", (name, name)
        ).fetchone()
        return () if row is None else tuple(json.loads(row[0]))

    def _insert(self, task: Task) -> None:
        self._db.execute(_INSERT, _row(task))

    def _prune(self) -> None:
        """Forget what ended long ago."""
        self._db.execute(f"DELETE FROM results WHERE task IN {_OLD}", (_KEEP_ENDED,))  # noqa: S608  # own text
        self._db.execute(f"DELETE FROM steps WHERE task IN {_OLD}", (_KEEP_ENDED,))  # noqa: S608  # own text
        self._db.execute(f"DELETE FROM tasks WHERE id IN {_OLD}", (_KEEP_ENDED,))  # noqa: S608  # own text

    # Working.

    def take(self, agent: str, now: float) -> Taken | float | None:
        """The next task of an agent, under a lease; else the time when one is due, or None."""
        queue = [_waiting(row) for row in self._db.execute(_IDLE, (agent, now)).fetchall()]
        ended = self._ended({name for one in queue for name in one.waits_for})
        chosen = choose(queue, ended, now, self._rules.queue.aging_s)
        if chosen is None:
            return self._next_due(agent, queue, ended)
        with transaction(self._db):
            body, owner = self._db.execute("SELECT body, owner FROM tasks WHERE id = ?", (chosen.id,)).fetchone()
            self._db.execute(
                "UPDATE tasks SET owner = ?, lease_until = ? WHERE id = ?",
                (self._owner, now + self._rules.waits.lease_s, chosen.id),
            )
        task = Task.from_json(json.loads(body))
        return Taken(
            task, self._known(task), owner is not None, {name: ended[name] for name in task.waits_for if name in ended}
        )

    def _next_due(self, agent: str, queue: Iterable[Waiting], ended: Mapping[str, Any]) -> float | None:
        """Also a lease that runs out makes a task due."""
        held = "SELECT min(lease_until) FROM tasks WHERE phase = 'open' AND agent = ? AND lease_until IS NOT NULL"
        times = (next_due(queue, ended), self._db.execute(held, (agent,)).fetchone()[0])
        return min((time for time in times if time is not None), default=None)

    def _ended(self, names: Iterable[str]) -> dict[str, dict[str, Any]]:
        """What became of those of these tasks that have ended, by the name that was asked for."""
        found = {name: task for name in names if (task := self.find(name)) is not None and task.phase != "open"}
        return {name: self._end(task) for name, task in found.items()}

    def _end(self, task: Task) -> dict[str, Any]:
        reference = task.found[-1][1] if task.found else ""
        return {"phase": task.phase, "reference": reference, "result": self.result(reference)}

    def _known(self, task: Task) -> dict[str, dict[str, Any]]:
        given = {} if not task.given else {"given": self.result(task.given[0])}
        return given | {step: self.result(reference) for step, reference in task.found}

    def result(self, reference: str) -> dict[str, Any]:
        """What is stored under a reference; empty when nothing is."""
        row = self._db.execute("SELECT body FROM results WHERE reference = ?", (reference,)).fetchone()
        return {} if row is None else dict(json.loads(row[0]))

    def save(self, save: Save, now: float, mono: float) -> bool:
        """One transaction; whether the task's owner wants it no longer. Raises LeaseLost."""
        task = save.task
        with transaction(self._db):
            if save.child is not None:
                self._insert(save.child)
            row = self._db.execute("SELECT owner, phase, cancel_asked FROM tasks WHERE id = ?", (task.id,)).fetchone()
            if row is None or row[:2] != (self._owner, "open"):
                raise LeaseLost(task.id)
            self._update(task, now)
            if save.result is not None:
                reference, body = save.result
                self._db.execute(
                    "INSERT OR REPLACE INTO results VALUES (?, ?, ?)", (reference, task.id, json.dumps(body))
                )
            self.account.write(task, save.note, now, mono)
            if save.note.wait and circle(save.waited_for, self._waits_of, (task.id, task.key)):
                self.account.tell("deadlock_broken", mono, task=task.id, agent=task.agent, dependency=save.note.wait)
            if task.phase != "open":
                self._cancel_children(task.id, mono)
        return bool(row[2])

    def _keep(self, task: str, reference: str, body: Mapping[str, Any]) -> None:
        self._db.execute("INSERT OR REPLACE INTO results VALUES (?, ?, ?)", (reference, task, json.dumps(body)))

    def _update(self, task: Task, now: float) -> None:
        idle = task.phase != "open" or bool(task.waits_for) or task.not_before > now
        self._db.execute(
            "UPDATE tasks SET phase = ?, not_before = ?, waits_for = ?, wait_until = ?, body = ?, owner = ?,"
            " lease_until = ? WHERE id = ?",
            (
                task.phase,
                task.not_before,
                json.dumps(task.waits_for),
                task.wait_until,
                json.dumps(task.to_json()),
                None if idle else self._owner,
                None if idle else now + self._rules.waits.lease_s,
                task.id,
            ),
        )

    def renew(self, ids: Sequence[str], now: float) -> None:
        """Hold these tasks for another lease, as far as they are still ours."""
        with transaction(self._db):
            self._db.executemany(
                "UPDATE tasks SET lease_until = ? WHERE id = ? AND owner = ? AND phase = 'open'",
                [(now + self._rules.waits.lease_s, name, self._owner) for name in ids],
            )

    # Ending from outside.

    def cancel(self, name: str, now: float, mono: float) -> Task | None:
        """Have a task end without its work; one that is being worked on ends after the step in hand."""
        task = self.find(name)
        if task is None or task.phase != "open":
            return task
        with transaction(self._db):
            self._db.execute("UPDATE tasks SET cancel_asked = 1 WHERE id = ?", (task.id,))
            lease_until = self._db.execute("SELECT lease_until FROM tasks WHERE id = ?", (task.id,)).fetchone()[0]
            if lease_until is None or lease_until <= now:
                self._cancel_now(task, mono)
        return self.find(name)

    def _cancel_now(self, task: Task, mono: float) -> None:
        done = ended(task, "cancelled", "cancelled")
        self._db.execute(
            "UPDATE tasks SET phase = ?, body = ?, owner = NULL, lease_until = NULL WHERE id = ?",
            (done.phase, json.dumps(done.to_json()), task.id),
        )
        self.account.ended(done, mono)
        self._cancel_children(task.id, mono)

    def _cancel_children(self, name: str, mono: float) -> None:
        """Nobody waits for them any longer."""
        rows = self._db.execute("SELECT body FROM tasks WHERE asked_by = ? AND phase = 'open'", (name,)).fetchall()
        for (body,) in rows:
            self._cancel_now(Task.from_json(json.loads(body)), mono)

    # Looking.

    def find(self, name: str) -> Task | None:
        """The task of this id or key."""
        row = self._db.execute("SELECT body FROM tasks WHERE id = ? OR key = ?", (name, name)).fetchone()
        return None if row is None else Task.from_json(json.loads(row[0]))

    def newest(self, phase: str | None, most: int) -> list[Task]:
        """The newest tasks, of one phase or of all."""
        rows = self._db.execute(
            "SELECT body FROM tasks WHERE ? IS NULL OR phase = ? ORDER BY created DESC, id LIMIT ?",
            (phase, phase, most),
        )
        return [Task.from_json(json.loads(body)) for (body,) in rows]

    def standing(self, now: float) -> dict[tuple[str, str], int]:
        """How many tasks there are by agent and state: a phase, where open ones are queued, running or waiting."""
        rows = self._db.execute(_STANDING, (now,))
        return {(agent, state): count for agent, state, count in rows}


def _waiting(row: tuple[Any, ...]) -> Waiting:
    """The columns of `_IDLE` as the queue sees them."""
    name, priority, created, deadline, not_before, waits_for, wait_until = row
    return Waiting(name, priority, created, deadline, not_before, tuple(json.loads(waits_for)), wait_until)


def _row(task: Task) -> tuple[Any, ...]:
    """The columns of `_INSERT`."""
    waits = json.dumps(task.waits_for)
    who = (task.id, task.key, task.agent, task.kind, task.phase, task.priority)
    when = (task.created, task.deadline, task.not_before, waits, task.wait_until)
    return (*who, *when, task.asked_by, json.dumps(task.to_json()))
