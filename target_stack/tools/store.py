"""What the tools remember: orders, tickets, and a record of every call, in one SQLite file.

A ticket and the audit line that tells of it are one transaction, so neither is ever there without the other.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SCHEMA = """
CREATE TABLE IF NOT EXISTS orders (number TEXT PRIMARY KEY, status TEXT NOT NULL, parcel TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS tickets (
    id INTEGER PRIMARY KEY AUTOINCREMENT, idempotency_key TEXT NOT NULL UNIQUE, order_number TEXT NOT NULL,
    subject TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS audit (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, wall REAL NOT NULL, caller TEXT NOT NULL, tool TEXT NOT NULL,
    arguments TEXT NOT NULL, outcome TEXT NOT NULL, result TEXT NOT NULL
);
"""


@dataclass(frozen=True)
class Ticket:
    """A stored ticket; `new` is False when the same key had made it before."""

    new: bool
    id: int
    order: str
    subject: str


@dataclass(frozen=True)
class AuditEntry:
    """Who called what with which arguments, and what came of it. `wall` is Unix seconds."""

    wall: float
    caller: str
    tool: str
    arguments: Mapping[str, Any]
    outcome: str
    result: Mapping[str, Any]


class ToolStore:
    """One open database; use it from one thread. Its changes become durable with `record`."""

    def __init__(self, path: Path | None, orders: Iterable[Mapping[str, str]]) -> None:
        """Open or make the file, or keep all in memory without one. Raises sqlite3.Error."""
        self._db = sqlite3.connect(path or ":memory:", check_same_thread=False)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.executescript(_SCHEMA)
        self._db.executemany("INSERT OR IGNORE INTO orders VALUES (:order, :status, :parcel)", list(orders))
        self._db.commit()

    def order(self, number: str) -> dict[str, str] | None:
        """Status and parcel of an order."""
        row = self._db.execute("SELECT status, parcel FROM orders WHERE number = ?", (number,)).fetchone()
        return None if row is None else {"status": row[0], "parcel": row[1]}

    def add_ticket(self, key: str, order: str, subject: str) -> Ticket:
        """The ticket of this key: stored now, or as an earlier call stored it."""
        insert = "INSERT OR IGNORE INTO tickets (idempotency_key, order_number, subject) VALUES (?, ?, ?)"
        new = self._db.execute(insert, (key, order, subject)).rowcount == 1
        query = "SELECT id, order_number, subject FROM tickets WHERE idempotency_key = ?"
        return Ticket(new, *self._db.execute(query, (key,)).fetchone())

    def record(self, entry: AuditEntry) -> None:
        """Write the audit line and commit everything since the last one."""
        texts = [json.dumps(entry.arguments, sort_keys=True), entry.outcome, json.dumps(entry.result, sort_keys=True)]
        insert = "INSERT INTO audit (wall, caller, tool, arguments, outcome, result) VALUES (?, ?, ?, ?, ?, ?)"
        self._db.execute(insert, (entry.wall, entry.caller, entry.tool, *texts))
        self._db.commit()

    def undo(self) -> None:
        """Forget everything since the last `record`."""
        self._db.rollback()

    def audit(self, after: int = 0, most: int = 1000) -> list[dict[str, Any]]:
        """Audit lines with a number above `after`, oldest first."""
        names = ("seq", "wall", "caller", "tool", "arguments", "outcome", "result")
        query = f"SELECT {', '.join(names)} FROM audit WHERE seq > ? ORDER BY seq LIMIT ?"  # noqa: S608  # own column names
        rows = [dict(zip(names, row, strict=True)) for row in self._db.execute(query, (after, most))]
        return [row | {k: json.loads(row[k]) for k in ("arguments", "result")} for row in rows]

    def close(self) -> None:
        """Close the file."""
        self._db.close()
