"""Databases on the addresses of an in-memory stack: SQLite plays PostgreSQL, for statements that both understand, and
knows by heart the few others that faults use.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
from collections.abc import Callable, Sequence

from chaos.ports import PostgresRefused, Rows
from chaos.testing.reach import reach
from chaos.testing.stack import FakeProxy, FakeSupervisor
from chaos.testing.tampered import Tampered

NO_SUCH_TABLE = "42P01"
DOCUMENTS = ("one", "two", "three")
"""Ids of what the table `documents` holds at first."""
_FILE_TROUBLE = {"EIO": "58030", "ENOSPC": "53100", "EMFILE": "53000", "EROFS": "42501"}
_READ_ONLY_CODE = "25006"
_KIND = re.compile(r"to_regclass\('(\w+)'\)")


class FakeDatabase:
    """One server's. `read_only` is the default of its transactions; `slept_s` what its last statements slept, `now_s`
    the time by its clock.
    """

    def __init__(self) -> None:
        """With the table `documents`."""
        self.read_only = False
        self.slept_s = 0.0
        self.now_s = 0.0
        self.sqlite = sqlite3.connect(":memory:", isolation_level=None)
        self.sqlite.create_function("translate", 3, lambda text, old, new: text.translate(str.maketrans(old, new)))
        self.sqlite.create_function("pg_sleep", 1, self._sleep)
        self.sqlite.create_function("current_setting", 1, _no_setting)
        self.sqlite.execute("ATTACH DATABASE ':memory:' AS information_schema")
        self.sqlite.execute("CREATE TABLE information_schema.columns (table_name, column_name, ordinal_position)")
        self.sqlite.executemany(
            "INSERT INTO information_schema.columns VALUES ('documents', ?, ?)", [("id", 1), ("body", 2)]
        )
        self.sqlite.execute("CREATE TABLE documents (id text PRIMARY KEY, body text)")
        self.sqlite.executemany("INSERT INTO documents VALUES (?, ?)", [(name, f"{name}: 45") for name in DOCUMENTS])

    def run(self, statements: Sequence[str]) -> tuple[Rows, ...]:
        """All as one transaction. Raises PostgresRefused."""
        self.slept_s = 0.0
        read_only = self.read_only and "SET TRANSACTION READ WRITE" not in statements
        self.sqlite.execute("BEGIN")
        try:
            results = tuple(self._one(statement, read_only=read_only) for statement in statements)
        except (sqlite3.Error, PostgresRefused) as problem:
            self.sqlite.execute("ROLLBACK")
            if isinstance(problem, PostgresRefused):
                raise
            code = NO_SUCH_TABLE if "no such table" in str(problem) else "42601"
            raise PostgresRefused(code, str(problem)) from problem
        self.sqlite.execute("COMMIT")
        return results

    def _one(self, statement: str, *, read_only: bool) -> Rows:
        for beginning, known in self._known().items():
            if statement.startswith(beginning):
                return known(statement)
        if read_only and not statement.startswith("SELECT "):
            raise PostgresRefused(_READ_ONLY_CODE, "cannot execute this in a read-only transaction")
        rows = self.sqlite.execute(statement).fetchall()
        return tuple(tuple(None if value is None else str(value) for value in row) for row in rows)

    def _known(self) -> dict[str, Callable[[str], Rows]]:
        def set_read_only(statement: str) -> Rows:
            self.read_only = "RESET" not in statement
            return ()

        return {
            "SET TRANSACTION": lambda _: (),
            "ALTER SYSTEM": set_read_only,
            "SELECT pg_reload_conf()": lambda _: (("t",),),
            "SELECT setting FROM pg_settings": lambda _: (("on" if self.read_only else "off",),),
            "SELECT count(*) FROM pg_file_settings": lambda _: ((str(int(self.read_only)),),),
            "SELECT relkind FROM pg_class": self._kind,
            "SELECT set_config(": lambda _: (("64kB",),),
            "SELECT count(*) FROM (SELECT n FROM generate_series": lambda _: (("20000",),),
            "SELECT pg_logical_emit_message(": lambda _: (("0/1",),),
            "SELECT extract(epoch FROM clock_timestamp())": lambda _: ((str(self.now_s),),),
        }

    def _kind(self, statement: str) -> Rows:
        wanted = _KIND.search(statement)
        found = self.sqlite.execute("SELECT type FROM sqlite_master WHERE name = ?", wanted.groups() if wanted else ())
        return tuple(("v" if kind == "view" else "r",) for (kind,) in found)

    def _sleep(self, seconds: float) -> str:
        self.slept_s = max(self.slept_s, seconds)
        return ""


def _no_setting(name: str) -> str:
    raise ValueError(f"unrecognized configuration parameter {name!r}")


class FakePostgres:
    """The `Postgres` port: every target whose wire is `postgres` has a database, which outlives its processes."""

    def __init__(self, supervisor: FakeSupervisor, proxy: FakeProxy, tampered: Tampered) -> None:
        """Addresses are looked up at each call."""
        self._supervisor = supervisor
        self._proxy = proxy
        self._tampered = tampered
        self._databases: dict[str, FakeDatabase] = {}

    def database(self, name: str) -> FakeDatabase:
        """Of the target with this name."""
        if name not in self._databases:
            self._databases[name] = FakeDatabase()
        return self._databases[name]

    async def ask(self, address: str, statements: Sequence[str], *, timeout_s: float = 1.0) -> tuple[Rows, ...]:
        """Run them in one transaction."""
        owner = await reach(self._supervisor, self._proxy, address, "postgres", timeout_s)
        error = self._tampered.error(owner)
        if error:
            raise PostgresRefused(_FILE_TROUBLE[error], f'could not open file "global/pg_filenode.map": {error}')
        database = self.database(owner.record.name)
        database.now_s = self._tampered.told_s(owner)
        results = database.run(statements)
        needs_s = database.slept_s + self._tampered.delay_s(owner)
        await asyncio.sleep(min(needs_s, timeout_s))
        if needs_s > timeout_s:
            raise TimeoutError(f"{address} did not answer")
        return results
