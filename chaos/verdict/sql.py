"""One SELECT over the evidence in a sealed DuckDB: no file, no network, no clock, no dice, bounded in memory and time.

    text ─► its syntax tree: one SELECT, over our tables only, nothing that answers differently next time
         ─► bound against empty tables: columns, types, one value or two          (both: when a file is checked)
         ─► asked of the run's own tables                                         (when it is judged)

DuckDB is not installed with the harness; without it no query can be checked or asked. It is looked up when it is
needed: most experiments have no query.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any

from chaos.ports import Need

DUCKDB = Need("module", "duckdb", "pip install 'brownout[sql]'")
MOST_MEMORY = "512MiB"
MOST_TIME_S = 30.0

_CLOCKS = frozenset(
    {"now", "today", "age", "ago", "localtime", "localtimestamp", "transaction_timestamp", "txid_current"}
    | {"get_current_time", "get_current_timestamp", "getvariable", "in_search_path"}
)
_SOURCES = frozenset({"range", "generate_series", "unnest"})
_WORD = re.compile(r"\w+")
_NAME = re.compile(r'"([^"]+)"')
_NUMBERS = ("INTEGER", "BIGINT", "DOUBLE", "DECIMAL", "FLOAT", "INT", "BOOLEAN", "HUGEINT", "TINYINT", "UINTEGER")
_SEALED = {
    "threads": 1,
    "memory_limit": MOST_MEMORY,
    "temp_directory": "",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",
}


class SqlRefused(Exception):
    """A query that cannot be answered; `at` and `length` are the stretch of its text that is at fault."""

    def __init__(self, headline: str, at: int = 0, length: int = 1, *, way_out: str | None = None) -> None:
        """Say what is wrong, in one line without a full stop."""
        super().__init__(headline)
        self.headline, self.at, self.length, self.way_out = headline, at, length, way_out


@dataclass(frozen=True)
class Shape:
    """What a checked query reads and gives: the tables that it names, and how many columns."""

    tables: tuple[str, ...]
    columns: int


def installed() -> bool:
    """Whether queries can be checked and asked here."""
    return importlib.util.find_spec(DUCKDB.name) is not None


def checked(query: str, empty_tables: Mapping[str, Any]) -> Shape:
    """The shape of a good query. Raises SqlRefused."""
    with _opened(empty_tables, query) as ask:
        tables = _read_only(query, ask, frozenset(empty_tables))
        ask(lambda connection: connection.execute(f"EXPLAIN\n{query}"))  # says where; `sql` does not
        given = ask(lambda connection: connection.sql(query))
        _one_or_two(given.columns, [str(each) for each in given.types], query)
        return Shape(tables, len(given.columns))


def answer(query: str, tables: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """The first two rows that a checked query gives. Raises SqlRefused for one that takes too much time or memory, or
    trips over a value.
    """
    with _opened(tables, query) as ask:
        found: list[tuple[Any, ...]] = ask(lambda connection: connection.execute(query).fetchmany(2))
        return found


Ask = Callable[[Callable[[Any], Any]], Any]


@contextmanager
def _opened(tables: Mapping[str, Any], query: str) -> Iterator[Ask]:
    """A database that holds these tables and can reach nothing else; what is asked of it ends in time."""
    duckdb = importlib.import_module(DUCKDB.name)
    connection = duckdb.connect(":memory:", config=_SEALED)
    overdue = threading.Timer(MOST_TIME_S, connection.interrupt)
    try:
        for name, table in tables.items():
            connection.register("handed_in", table)
            connection.execute(f'CREATE TABLE "{name}" AS SELECT * FROM handed_in')  # noqa: S608  # names of our own
            connection.unregister("handed_in")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        overdue.start()

        def ask(question: Callable[[Any], Any]) -> Any:
            try:
                return question(connection)
            except duckdb.InterruptException:
                raise SqlRefused(f"the query took longer than {MOST_TIME_S:g}s", 0, len(query)) from None
            except duckdb.OutOfMemoryException:
                raise SqlRefused(f"the query took more than {MOST_MEMORY} of memory", 0, len(query)) from None
            except duckdb.Error as error:
                raise _told(str(error), query) from None

        yield ask
    finally:
        overdue.cancel()
        connection.close()


# What a query may say

_ONE = "write one SELECT: evidence is only read"


def _read_only(query: str, ask: Ask, known: frozenset[str]) -> tuple[str, ...]:
    """The tables that it names. Raises SqlRefused for anything but one SELECT over these tables that always answers the
    same.
    """
    tree = json.loads(ask(lambda c: c.execute("SELECT json_serialize_sql(?::VARCHAR)", [query]).fetchone())[0])
    if tree["error"]:
        _refuse_tree(tree, query)
    if len(tree["statements"]) != 1:
        many = "more than one statement" if tree["statements"] else "no statement"
        raise SqlRefused(many, 0, len(query), way_out="write one SELECT")
    named = frozenset(key["key"] for node in _nodes(tree) for key in node.get("cte_map", {}).get("map", ()))
    fickle = _fickle()
    for node in _nodes(tree):
        _allowed(node, query, known | named, fickle)
    return tuple(sorted({node["table_name"] for node in _nodes(tree) if node.get("type") == "BASE_TABLE"} & known))


def _refuse_tree(tree: Mapping[str, Any], query: str) -> None:
    if tree.get("error_type") == "not implemented":
        raise SqlRefused("only a SELECT can be asked", 0, len(query), way_out=_ONE)
    at = _characters(query, int(tree.get("position", 0) or 0))
    word = _WORD.match(query, at)
    raise SqlRefused(_short(tree["error_message"]), at, len(word[0]) if word else 1)


def _nodes(tree: Any) -> Iterator[Mapping[str, Any]]:
    """Every object of a syntax tree."""
    if isinstance(tree, Mapping):
        yield tree
    for child in tree.values() if isinstance(tree, Mapping) else tree if isinstance(tree, list) else ():
        yield from _nodes(child)


@cache  # what a DuckDB can do does not change while it is loaded, and asking for it is most of the time of a check
def _fickle() -> frozenset[str]:
    """Functions whose answer depends on more than their arguments, and macros made of them."""
    connection = importlib.import_module(DUCKDB.name).connect(":memory:", config=_SEALED)
    try:
        told = "SELECT function_name, stability, macro_definition FROM duckdb_functions()"
        rows = connection.execute(told).fetchall()
    finally:
        connection.close()
    volatile = {str(name) for name, stability, _ in rows if stability == "VOLATILE"} - {"error"}
    clocks = {str(name) for name, _, _ in rows if str(name).startswith(("current_", "pg_"))}
    found = volatile | clocks | _CLOCKS
    return frozenset(found | {str(name) for name, _, made_of in rows if made_of and _mentions(str(made_of), found)})


def _mentions(text: str, names: set[str]) -> bool:
    words = "".join(char if char.isalnum() or char == "_" else " " for char in text.lower()).split()
    return not names.isdisjoint(words)


def _allowed(node: Mapping[str, Any], query: str, tables: frozenset[str], fickle: frozenset[str]) -> None:
    kind, called = node.get("type"), str(node.get("function_name", "")).lower()
    column = node.get("column_names") or [""]
    if called in fickle or (kind == "COLUMN_REF" and len(column) == 1 and column[0].lower() in fickle):
        what = called or column[0]
        _refuse_node(node, query, f"`{what}` does not answer the same the next time", "ask the evidence only")
    if kind == "TABLE_FUNCTION" and (source := str(node["function"]["function_name"])) not in _SOURCES:
        _refuse_node(node, query, f"`{source}` reads something else than the evidence", _only(tables))
    if kind == "BASE_TABLE" and node["table_name"] not in tables:
        _refuse_node(node, query, f"the evidence has no table `{node['table_name']}`", _only(tables))
    if kind == "SHOW_REF":
        raise SqlRefused("only a SELECT can be asked", 0, len(query), way_out=_ONE)
    if isinstance(node.get("sample"), Mapping):
        way_out = "ask the evidence only"
        raise SqlRefused("a random sample does not answer the same the next time", 0, len(query), way_out=way_out)


def _only(tables: frozenset[str]) -> str:
    return f"there are {', '.join(sorted(tables))}"


def _refuse_node(node: Mapping[str, Any], query: str, headline: str, way_out: str) -> None:
    at, length = int(node.get("query_location", 0)), int(node.get("query_location_length", 1))
    at = at if at <= len(query.encode()) else 0
    raise SqlRefused(headline, _characters(query, at), max(1, length), way_out=way_out)


def _characters(query: str, byte: int) -> int:
    return len(query.encode()[:byte].decode(errors="ignore"))


def _one_or_two(columns: list[str], types: list[str], query: str) -> None:
    if len(columns) > 2:
        way_out = "select one number, or two: hits and of how many"
        raise SqlRefused(f"it gives {len(columns)} columns", 0, len(query), way_out=way_out)
    for name, kind in zip(columns, types, strict=True):
        if not kind.startswith(_NUMBERS):
            way_out = "count, sum, or take a quantile of it"
            raise SqlRefused(f"`{name}` is {kind}, wanted a number", 0, len(query), way_out=way_out)


# What DuckDB says, in our words


def _told(text: str, query: str) -> SqlRefused:
    """Its message with the place that its `LINE n: ... ^` points at."""
    head, _, rest = text.partition("\n")
    lines = rest.split("\n")
    hint = next((line.strip() for line in lines if line.startswith(("Did you mean", "Candidate"))), None)
    at, length = _place(lines, query)
    return SqlRefused(_short(head), at, length, way_out=_hint(hint))


def _short(text: str) -> str:
    """Its first line without the class of the error, no longer than a headline."""
    _, colon, said = text.partition("\n")[0].partition("Error: ")
    flat = " ".join((said if colon else text).split()).rstrip(".!").replace('"', "`")
    flat = flat[:1].lower() + flat[1:]
    return flat if len(flat) <= 80 else f"{flat[:79]}…"


def _hint(line: str | None) -> str | None:
    near = _NAME.search(line or "")
    return f"did you mean `{near[1]}`?" if near else None


def _place(lines: list[str], query: str) -> tuple[int, int]:
    """Where it points; the whole query where it does not. A long line is shown in part, with dots at its ends."""
    for told, carets in pairwise(lines):
        if told.startswith("LINE ") and "^" in carets:
            number, _, shown = told.removeprefix("LINE ").partition(": ")
            column = carets.index("^") - (len(told) - len(shown))
            # The query begins in line 2 when it was explained.
            for line in (int(number) - 2, int(number) - 1):
                if (at := _in_line(query.split("\n"), line, shown)) is not None:
                    return at + column, carets.count("^")
    return 0, len(query)


def _in_line(lines: list[str], line: int, shown: str) -> int | None:
    """Where the shown part of a line begins in the whole query."""
    inner = shown.removeprefix("...").removesuffix("...")
    begin = lines[line].find(inner) if 0 <= line < len(lines) else -1
    if begin < 0:
        return None
    return sum(len(each) + 1 for each in lines[:line]) + begin - (len(shown) - len(shown.removeprefix("...")))
