"""A table of a PostgreSQL server that is moved out of its users' sight, and a view that stands in its place.

    documents: all rows ── one transaction ──► documents: a view of "our mark"     "our mark": all rows

Nothing is copied, changed or deleted, so the undo is two names. It is in the database itself: it outlives us, the
server and a crash, and what was written into the hidden table meanwhile is there afterwards.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from chaos.faults.fault import CannotInject, RevertFailed, Sighting, Undo
from chaos.faults.grips.grip import ANSWER_S, Grip, grips_in
from chaos.faults.grips.marks import new_mark
from chaos.faults.grips.sightings import every_one
from chaos.faults.grips.together import all_of
from chaos.inventory import Target
from chaos.ports import Host, PostgresRefused, Rows

NO_SUCH_TABLE = "42P01"
"""SQLSTATE `undefined_table` (PostgreSQL, appendix A)."""
TROUBLE = (OSError, PostgresRefused)
"""What a call raises."""
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_READ_WRITE = "SET TRANSACTION READ WRITE"  # the server may have been made read-only by another fault


def not_postgres(targets: tuple[Target, ...], **names: str) -> tuple[str, ...]:
    """Why these cannot be harmed: they speak something else, or a setting is no plain name."""
    found = [
        f"{t.name}: it speaks {t.wire}, not PostgreSQL's protocol; choose a target of role vector-store"
        for t in targets
        if t.wire != "postgres"
    ]
    found += [
        f"{setting}: {name!r} is no plain name of a {setting} (lower case letters, digits, _)"
        for setting, name in names.items()
        if not _NAME.fullmatch(name)
    ]
    return tuple(found)


async def prepared(kind: str, table: str, targets: tuple[Target, ...], host: Host) -> dict[str, Any]:
    """An undo. Raises CannotInject for a table that is empty, not there, or harmed already."""
    grips = [Grip.of(target) for target in targets]
    for grip in grips:
        try:
            rows = await count(grip, table, host)
        except TROUBLE as problem:
            raise CannotInject(
                f"{grip.name}: no count of its table {table}: {problem!r}; see with `brownout status` whether "
                "it is ready"
            ) from problem
        if not rows:
            raise CannotInject(f"{grip.name}: its table {table} is empty or not there: nothing to take away")
        await _must_be_a_table(grip, table, host)
    return {"mark": new_mark(kind), "table": table, "targets": [grip.to_json() for grip in grips]}


async def stand_in(grip: Grip, undo: Undo, query: str, host: Host) -> None:
    """Move a target's table away and let `query`, in which `{hidden}` is its new name, answer in its place. Raises
    CannotInject.
    """
    table, mark = undo["table"], undo["mark"]
    view = query.replace("{hidden}", f'"{mark}"')
    steps = (_READ_WRITE, f'ALTER TABLE {table} RENAME TO "{mark}"', f"CREATE VIEW {table} AS {view}")
    await _must_be_a_table(grip, table, host)
    try:
        await ask(grip, steps, host)
    except TROUBLE as problem:
        raise CannotInject(f"{grip.name}: its table {table} could not be moved: {problem!r}") from problem


async def take_away(undo: Undo, host: Host) -> None:
    """Give every table its name back. Raises RevertFailed."""
    await all_of(_bring_back(grip, undo["table"], undo["mark"], host) for grip in grips_in(undo))


async def ask(grip: Grip, statements: Sequence[str], host: Host, *, timeout_s: float = ANSWER_S) -> tuple[Rows, ...]:
    """Send them as one transaction. Raises OSError or PostgresRefused."""
    return await host.postgres.ask(grip.address, statements, timeout_s=timeout_s)


async def number(grip: Grip, query: str, host: Host, *, timeout_s: float = ANSWER_S) -> int:
    """What a query for one number brings. Raises OSError or PostgresRefused."""
    ((row,),) = await ask(grip, (query,), host, timeout_s=timeout_s)
    return int(row[0] or 0)


async def count(grip: Grip, table: str, host: Host, *, timeout_s: float = ANSWER_S) -> int | None:
    """Rows of a table; None when it is not there. Raises OSError or PostgresRefused."""
    try:
        return await number(grip, f'SELECT count(*) FROM "{table}"', host, timeout_s=timeout_s)  # noqa: S608  # a checked name, or ours
    except PostgresRefused as refused:
        if refused.code == NO_SUCH_TABLE:
            return None
        raise


async def seen_whole(undo: Undo, host: Host) -> Sighting:
    """Are there rows where searches look, and nothing under our mark?"""
    return await every_one(_seen_whole(grip, undo, host) for grip in grips_in(undo))


async def _look(grip: Grip, undo: Undo, host: Host) -> tuple[int | None, int | None, str]:
    here, hidden = await count(grip, undo["table"], host), await count(grip, undo["mark"], host)
    told = "nothing" if hidden is None else f"{hidden} rows"
    return here, hidden, f"{grip.name}: {here or 'no'} rows in {undo['table']}, {told} under our mark"


async def seen(grip: Grip, undo: Undo, wanted: Callable[[int, int], bool], host: Host) -> Sighting:
    """Do the numbers of rows where searches look and under our mark show the harm at this target?"""
    try:
        here, hidden, told = await _look(grip, undo, host)
    except TROUBLE as problem:
        return silent(grip, problem)
    return Sighting(here is not None and hidden is not None and wanted(here, hidden), told)


async def _seen_whole(grip: Grip, undo: Undo, host: Host) -> Sighting:
    try:
        here, hidden, told = await _look(grip, undo, host)
    except TROUBLE as problem:
        return silent(grip, problem)
    return Sighting(bool(here) and hidden is None, told)


def silent(grip: Grip, problem: BaseException) -> Sighting:
    """Nothing is seen of a server that does not answer."""
    return Sighting(seen=False, what=f"{grip.name}: {grip.address} does not answer: {problem!r}")


async def _must_be_a_table(grip: Grip, table: str, host: Host) -> None:
    """A view in its place is another fault's: of two, the first revert would take the other's away."""
    try:
        (found,) = await ask(grip, (f"SELECT relkind FROM pg_class WHERE oid = to_regclass('{table}')",), host)  # noqa: S608  # a checked name
    except TROUBLE as problem:
        raise CannotInject(f"{grip.name}: no word on its table {table}: {problem!r}") from problem
    if found and found[0][0] == "v":
        raise CannotInject(
            f"{grip.name}: {table} is a view and no table; if another fault stands in its place, let that end first"
        )


async def _bring_back(grip: Grip, table: str, mark: str, host: Host) -> None:
    """The data outlives the server, so a dead one leaves the harm in place: that is a failure, not an end."""
    steps = (f"DROP VIEW {table}", f'ALTER TABLE "{mark}" RENAME TO {table}')
    try:
        if await count(grip, mark, host) is not None:
            await ask(grip, (_READ_WRITE, *steps), host)
    except TROUBLE as problem:
        where, _, port = grip.address.rpartition(":")
        raise RevertFailed(
            f'{grip.name}: its rows are still in "{mark}": {problem!r}; by hand, when it is up: '
            f"psql -h {where} -p {port} -U postgres -c '{'; '.join(steps)}'"
        ) from problem
