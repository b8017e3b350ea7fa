"""One row that a service writes to see whether its file still takes what it is given: the check behind `GET /storage`.

A ping says that a process runs; this says that a commit reaches the disk. It changes nothing that anybody reads.
"""

from __future__ import annotations

import sqlite3
import time
from typing import Any

from target_stack.transactions import transaction

ROUTE = "/storage"
_TABLE = "CREATE TABLE IF NOT EXISTS storage_check (id INTEGER PRIMARY KEY CHECK (id = 1), mono REAL NOT NULL)"
_WRITE = "INSERT OR REPLACE INTO storage_check VALUES (1, ?)"


def check_storage(db: sqlite3.Connection) -> tuple[int, dict[str, Any]]:
    """Write the row and have it synced; the HTTP status and the body that tell of it: 200, or 503 with the reason."""
    began = time.monotonic()
    try:
        (usual,) = db.execute("PRAGMA synchronous").fetchone()
        db.execute("PRAGMA synchronous=FULL")
        try:
            with transaction(db):
                db.execute(_TABLE)
                db.execute(_WRITE, (began,))
        finally:
            db.execute(f"PRAGMA synchronous={usual}")
    except sqlite3.Error as problem:
        return 503, {"status": "failing", "error": str(problem)}
    return 200, {"status": "ok", "took_s": round(time.monotonic() - began, 6)}
