"""Any question that one SELECT over the evidence answers with one number.

A query that gives two columns, hits and of how many, claims a share: it gets the Wilson interval of a share. One
column is exact. No row, several rows and NULL say nothing, and never uphold anything.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from chaos.ports import Need
from chaos.settings import setting
from chaos.spec.model import Misreading, Unit
from chaos.verdict.events import unheard
from chaos.verdict.gauges import exact
from chaos.verdict.outcome import Estimate
from chaos.verdict.shares import share_estimate
from chaos.verdict.sheets import SCHEMAS, empty, sheet
from chaos.verdict.sql import DUCKDB, Shape, SqlRefused, answer, checked, installed
from chaos.verdict.view import View


@dataclass(frozen=True)
class Sql:
    """See `summary`. Written `sql: SELECT ...` in the file."""

    name: ClassVar[str] = "sql"
    summary: ClassVar[str] = "one number that a SELECT over the evidence gives, or two for a share: hits, of how many"
    unit: ClassVar[Unit] = "factor"
    needs_window: ClassVar[bool] = False
    may_have_window: ClassVar[bool] = True
    needs: ClassVar[tuple[Need, ...]] = (DUCKDB,)
    notes: ClassVar[tuple[str, ...]] = (
        "with `window`, samples, requests, readings, events and spans hold what falls into it; without, the whole run",
        *(f"{table}: {', '.join(schema.names)}" for table, schema in SCHEMAS.items()),
    )

    sql: str = setting("one SELECT; a share is bounded by a number from 0 to 1")

    def misread(self) -> Misreading | None:
        """What is wrong with the query; None also where nobody can tell."""
        try:
            self._shape()
        except SqlRefused as problem:
            return Misreading("sql", problem.headline, problem.way_out, problem.at, problem.length)
        return None

    def _shape(self) -> Shape | None:
        return checked(self.sql, {name: empty(name) for name in SCHEMAS}) if installed() else None

    def estimate(self, view: View) -> Estimate:
        """The value as it is, or the share with its interval; it rests on the tables that were asked."""
        try:
            shape = self._shape()
            if shape is None:
                return Estimate(None, missing=f"{DUCKDB} is not here to ask the query; {DUCKDB.how}")
            tables = {name: sheet(name, view) for name in shape.tables}
            silent = _silent(tables, view)
            if silent:
                return Estimate(None, missing=silent)
            found = _estimate_of(answer(self.sql, tables), view)
        except SqlRefused as problem:
            return Estimate(None, missing=problem.headline)
        return replace(found, records=tuple(f"{name} ({table.num_rows} rows)" for name, table in tables.items()))


def _silent(tables: Mapping[str, Any], view: View) -> str | None:
    """Which table says nothing because nobody looked: counting nothing in it would prove nothing."""
    if "events" in tables:
        whole = view.times.load_start or 0.0, view.times.load_end or 0.0
        start, end = (view.window.start, view.window.end) if view.window else whole
        return unheard(view.evidence, start, end)
    bare = [
        name for name in ("samples", "requests", "readings", "spans") if name in tables and not tables[name].num_rows
    ]
    return f"there are no {bare[0]} to ask" if bare else None


def _estimate_of(rows: list[tuple[Any, ...]], view: View) -> Estimate:
    if len(rows) != 1:
        return Estimate(None, missing="the query gave no row" if not rows else "the query gave several rows")
    numbers = [None if value is None else float(value) for value in rows[0]]
    known = [number for number in numbers if number is not None and math.isfinite(number)]
    if len(known) != len(numbers):
        return Estimate(None, missing="the query gave NULL" if None in numbers else "the query gave no finite number")
    if len(known) == 1:
        return exact(known[0], 1)
    hits, n = known
    if not 0 <= hits <= n or n == 0:
        return Estimate(None, missing=f"{hits:g} of {n:g} is no share")
    return share_estimate(int(hits), int(n), view.bound, "rows")
