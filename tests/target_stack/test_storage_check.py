"""The check behind GET /storage tells whether a commit reaches the file."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from target_stack.storage_check import check_storage


def test_a_file_that_takes_a_write_is_well_and_is_synced_as_before(tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "file.sqlite", isolation_level=None)
    db.execute("PRAGMA synchronous=NORMAL")
    assert [200, 200] == [check_storage(db)[0] for _ in range(2)]
    assert (1,) == db.execute("PRAGMA synchronous").fetchone()
    assert (1,) == db.execute("SELECT count(*) FROM storage_check").fetchone()


def test_a_file_that_takes_none_is_failing_and_says_why(tmp_path: Path) -> None:
    path = tmp_path / "file.sqlite"
    sqlite3.connect(path).execute("CREATE TABLE other (id)")
    status, told = check_storage(sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None))
    assert (503, "attempt to write a readonly database") == (status, told["error"])
