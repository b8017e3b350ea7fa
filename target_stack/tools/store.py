"""What the tools remember, in one SQLite file: the shop, the ledger of side effects, the audit.

The ledger is both the proof that a side effect happened and the memory that keeps it from happening twice: one row per
agent and idempotency key, written in the transaction of the effect itself. WAL with `synchronous=NORMAL`: a commit
survives the death of the process at any instant; a power cut may take the last ones.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from target_stack.storage_check import check_storage
from target_stack.tools.audit import GENESIS, chained
from target_stack.transactions import transaction

_SCHEMA = """
CREATE TABLE IF NOT EXISTS orders (
    number TEXT PRIMARY KEY, customer TEXT NOT NULL, status TEXT NOT NULL, parcel TEXT NOT NULL,
    paid_cents INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS tickets (
    id INTEGER PRIMARY KEY AUTOINCREMENT, order_number TEXT NOT NULL REFERENCES orders, subject TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS refunds (
    id INTEGER PRIMARY KEY AUTOINCREMENT, order_number TEXT NOT NULL REFERENCES orders, cents INTEGER NOT NULL
);
CREATE VIRTUAL TABLE IF NOT EXISTS documents USING fts5(name UNINDEXED, body, tokenize = 'porter');
CREATE TABLE IF NOT EXISTS ledger (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, agent TEXT NOT NULL, key TEXT NOT NULL, tool TEXT NOT NULL,
    arguments TEXT NOT NULL, result TEXT NOT NULL, trace_id TEXT, wall REAL NOT NULL, mono REAL NOT NULL,
    UNIQUE (agent, key)
);
CREATE TABLE IF NOT EXISTS audit (seq INTEGER PRIMARY KEY AUTOINCREMENT, line TEXT NOT NULL, hash TEXT NOT NULL);
CREATE TRIGGER IF NOT EXISTS audit_is_not_changed BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'append-only'); END;
CREATE TRIGGER IF NOT EXISTS audit_is_not_cut BEFORE DELETE ON audit BEGIN SELECT RAISE(ABORT, 'append-only'); END;
"""
_BUSY_S = 1.0


@dataclass(frozen=True)
class Effect:
    """One row of the ledger: a side effect that happened, and the result that its caller was given."""

    agent: str
    key: str
    tool: str
    arguments: Mapping[str, Any]
    result: Mapping[str, Any]
    trace_id: str | None
    wall: float
    mono: float


class ToolStore:
    """One open database; use it from one thread."""

    def __init__(
        self, path: Path | None, orders: Iterable[Mapping[str, Any]], documents: Iterable[tuple[str, str]] = ()
    ) -> None:
        """Open or make the file, or keep all in memory without one. Raises sqlite3.Error."""
        self._db = sqlite3.connect(path or ":memory:", timeout=_BUSY_S, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.execute("PRAGMA foreign_keys=ON")
        self._db.executescript(_SCHEMA)
        with self.transaction():
            insert = "INSERT OR IGNORE INTO orders VALUES (:order, :customer, :status, :parcel, :paid_cents)"
            self._db.executemany(insert, list(orders))
            if not self._one("SELECT count(*) FROM documents")[0]:
                self._db.executemany("INSERT INTO documents VALUES (?, ?)", list(documents))

    def check(self) -> tuple[int, dict[str, Any]]:
        """Whether the file takes a write: see storage_check."""
        return check_storage(self._db)

    def transaction(self) -> AbstractContextManager[None]:
        """All or nothing of what happens inside. Raises sqlite3.Error."""
        return transaction(self._db)

    def _one(self, query: str, *values: Any) -> Any:
        return self._db.execute(query, values).fetchone()

    def order(self, number: str) -> dict[str, Any] | None:
        """Customer, status, parcel and money of an order."""
        row = self._one("SELECT customer, status, parcel, paid_cents FROM orders WHERE number = ?", number)
        if row is None:
            return None
        refunded = self._one("SELECT coalesce(sum(cents), 0) FROM refunds WHERE order_number = ?", number)[0]
        names = ("customer", "status", "parcel", "paid_cents", "refunded_cents")
        return dict(zip(names, (*row, refunded), strict=True))

    def owner_of(self, number: str) -> str | None:
        """The customer of an order."""
        row = self._one("SELECT customer FROM orders WHERE number = ?", number)
        return None if row is None else str(row[0])

    def search(self, text: str, most: int) -> list[tuple[str, str]]:
        """Names and texts of the documents that hold any of the words, best first."""
        words = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", text))
        query = "SELECT name, body FROM documents WHERE documents MATCH ? ORDER BY rank LIMIT ?"
        return list(self._db.execute(query, (words, most))) if words else []

    def add_ticket(self, order: str, subject: str) -> int:
        """Number of a new ticket."""
        insert = "INSERT INTO tickets (order_number, subject) VALUES (?, ?) RETURNING id"
        return int(self._one(insert, order, subject)[0])

    def add_refund(self, order: str, cents: int) -> int:
        """Number of a new refund."""
        insert = "INSERT INTO refunds (order_number, cents) VALUES (?, ?) RETURNING id"
        return int(self._one(insert, order, cents)[0])

    def effect(self, agent: str, key: str) -> Effect | None:
        """What this agent's key did."""
        query = "SELECT tool, arguments, result, trace_id, wall, mono FROM ledger WHERE agent = ? AND key = ?"
        row = self._one(query, agent, key)
        if row is None:
            return None
        return Effect(agent, key, row[0], json.loads(row[1]), json.loads(row[2]), *row[3:])

    def add_effect(self, done: Effect) -> None:
        """Remember a side effect under its key. Raises sqlite3.IntegrityError when the key has one already."""
        columns = "agent, key, tool, arguments, result, trace_id, wall, mono"
        texts = (json.dumps(done.arguments), json.dumps(done.result))
        row = (done.agent, done.key, done.tool, *texts, done.trace_id, done.wall, done.mono)
        self._db.execute(f"INSERT INTO ledger ({columns}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)  # noqa: S608  # own column names

    def append_audit(self, line: Mapping[str, Any]) -> None:
        """Write an audit line behind the last."""
        last = self._one("SELECT hash FROM audit ORDER BY seq DESC LIMIT 1")
        text = json.dumps(line, sort_keys=True)
        here = chained(last[0] if last else GENESIS, json.loads(text))
        self._db.execute("INSERT INTO audit (line, hash) VALUES (?, ?)", (text, here))

    def audit(self, after: int = 0, most: int = 1000) -> tuple[list[dict[str, Any]], int]:
        """Entries (`seq`, the line's fields, `hash`) numbered above `after`, oldest first; and the last number."""
        rows = self._db.execute("SELECT seq, line, hash FROM audit WHERE seq > ? ORDER BY seq LIMIT ?", (after, most))
        entries = [{"seq": seq, **json.loads(line), "hash": link} for seq, line, link in rows]
        return entries, self._last("audit")

    def ledger(self, after: int = 0, most: int = 1000) -> tuple[list[dict[str, Any]], int]:
        """Side effects numbered above `after`, oldest first; and the last number."""
        names = ("seq", "agent", "key", "tool", "trace_id", "wall", "mono", "result")
        query = f"SELECT {', '.join(names)} FROM ledger WHERE seq > ? ORDER BY seq LIMIT ?"  # noqa: S608  # own column names
        rows = [dict(zip(names, row, strict=True)) for row in self._db.execute(query, (after, most))]
        return [row | {"result": json.loads(row["result"])} for row in rows], self._last("ledger")

    def _last(self, table: str) -> int:
        row = self._one("SELECT seq FROM sqlite_sequence WHERE name = ?", table)
        return 0 if row is None else int(row[0])

    def close(self) -> None:
        """Close the file."""
        self._db.close()
