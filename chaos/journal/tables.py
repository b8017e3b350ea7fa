"""Samples and readings as numpy columns: a million rows are a handful of arrays, and every question is one vector
operation.

A column is made from the file when it is first asked for, so a judgement costs what its hypotheses look at. What never
happened is nan (`first_token_s`), what is unknown is -1 (`answer_ok`) or None (`leaked`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, Self, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from chaos.journal.columns import inside, last_inside, numbers
from chaos.journal.record import ReadingRow, Sample
from chaos.journal.samples import GAPS_BEFORE, readings_table, samples_table
from chaos.journal.series import parse_series
from chaos.journal.sketch import NEVER, Floats, Integers, Pauses, bounds_of
from chaos.journal.texts import Bools, Texts

__all__ = ["Bools", "Floats", "Integers", "Points", "ReadingTable", "SampleTable", "Texts"]

Rows = TypeVar("Rows")


def _floats(column: pa.ChunkedArray) -> Floats:
    return numbers(column, np.float64, np.nan)


def _integers(column: pa.ChunkedArray) -> Integers:
    return numbers(column, np.int64, 0)


def _bools(column: pa.ChunkedArray) -> Bools:
    return numbers(column, np.bool_, missing=False)


def _flags(column: pa.ChunkedArray) -> npt.NDArray[np.int8]:
    """1, 0, and -1 where nobody knows."""
    return numbers(column, np.int8, -1)


class _Column(Generic[Rows]):
    """A column of a `SampleTable`: made from the file once, or chosen from that of the whole table."""

    def __init__(self, make: Callable[[pa.ChunkedArray], Rows]) -> None:
        self._make = make

    def __set_name__(self, owner: type[SampleTable], name: str) -> None:
        self._name = name

    def __get__(self, table: SampleTable, owner: type[SampleTable]) -> Rows:
        whole = table.chosen_from
        made = self._make(table.arrow[self._name]) if whole is None else getattr(whole, self._name)[table.rows]
        table.__dict__[self._name] = made  # from now on found there, before this is asked
        return made


@dataclass(frozen=True, eq=False)
class SampleTable:
    """One entry per attempt; columns as in `Sample`.

    A planned request that was never sent has one final row with `attempt` 0 and `sent_s` nan. `rows` are the numbers of
    the rows that were `chosen_from` the whole table, where this is not the whole.
    """

    arrow: pa.Table
    rows: Integers | None = None
    chosen_from: SampleTable | None = None

    load = _Column(Texts.from_arrow)
    request = _Column(_integers)
    attempt = _Column(_integers)
    final = _Column(_bools)
    intended_s = _Column(_floats)
    sent_s = _Column(_floats)
    first_token_s = _Column(_floats)
    end_s = _Column(_floats)
    outcome = _Column(Texts.from_arrow)
    why = _Column(Texts.from_arrow)
    status = _Column(_integers)
    served_by = _Column(Texts.from_arrow)
    degraded = _Column(Texts.from_arrow)
    tokens = _Column(_integers)
    answer_ok = _Column(_flags)
    leaked = _Column(Texts.from_arrow)

    def __len__(self) -> int:
        """Rows."""
        return len(self.arrow) if self.rows is None else len(self.rows)

    @classmethod
    def from_arrow(cls, table: pa.Table) -> Self:
        """From a table with the schema of `chaos.journal.samples`."""
        return cls(table)

    @classmethod
    def build(cls, samples: Iterable[Sample]) -> Self:
        """From values, for tests and small evidence."""
        return cls.from_arrow(samples_table(samples))

    def where(self, mask: Bools) -> SampleTable:
        """The rows for which `mask` is true."""
        numbers = np.flatnonzero(mask)
        whole, rows = (self, numbers) if self.rows is None else (self.chosen_from, self.rows[numbers])
        return SampleTable(self.arrow, rows, whole)

    @cached_property
    def finals(self) -> SampleTable:
        """One row per planned request."""
        return self if self.final.all() else self.where(self.final)

    @cached_property
    def trace_id(self) -> pa.ChunkedArray:
        """Each has its own, so they stay as they lie in the file."""
        whole = self.arrow["trace_id"]
        return whole if self.rows is None else whole.take(pa.array(self.rows))

    def pauses(self, mask: Bools) -> Pauses:
        """The pauses between tokens of these rows, counted."""
        chosen = np.zeros(len(self.arrow), dtype=np.bool_)
        chosen[np.flatnonzero(mask) if self.rows is None else self.rows[mask]] = True
        if GAPS_BEFORE.name in self.arrow.column_names:
            return Pauses.exact(_entries(self.arrow[GAPS_BEFORE.name], chosen))
        return Pauses.counted(_merged(self.arrow["gap_buckets"], self.arrow["gap_counts"], chosen))

    def longest_pauses_s(self) -> Floats:
        """The longest pause between tokens of each row, as its sketch tells it; 0 where there is none."""
        if GAPS_BEFORE.name in self.arrow.column_names:
            lists = self.arrow[GAPS_BEFORE.name].to_pylist()
            whole = np.array([max(gaps, default=0.0) for gaps in lists], dtype=np.float64)
        else:
            chunks = [last_inside(chunk, 0) for chunk in self.arrow["gap_buckets"].chunks]
            whole = bounds_of(np.concatenate([np.empty(0, dtype=np.int64), *chunks]).astype(np.int64))[1]
        return whole if self.rows is None else whole[self.rows]


def _entries(lists: pa.ChunkedArray, chosen: Bools) -> npt.NDArray[Any]:
    """The entries of the lists of the chosen rows, one behind the other."""
    parts, start = [np.empty(0)], 0
    for chunk in lists.chunks:
        parts.append(inside(chunk, chosen[start : start + len(chunk)]))
        start += len(chunk)
    return np.concatenate(parts)


def _merged(buckets: pa.ChunkedArray, counts: pa.ChunkedArray, chosen: Bools) -> Integers:
    """The sketches of the chosen rows as one: pauses in each bucket."""
    merged, start = np.zeros(NEVER + 1), 0
    for mine, theirs in zip(buckets.chunks, counts.chunks, strict=True):
        rows = chosen[start : start + len(mine)]
        start += len(mine)
        if rows.any():
            here = np.bincount(inside(mine, rows), inside(theirs, rows))
            merged[: len(here)] += here
    return merged.astype(np.int64)


@dataclass(frozen=True)
class Points:
    """The values of the selected series, in the order in which they were read; the four arrays have one length."""

    t: Floats
    target: Texts
    series: Texts
    value: Floats

    def __len__(self) -> int:
        """Points."""
        return len(self.t)


@dataclass(frozen=True)
class ReadingTable:
    """Every reading of every series."""

    t: Floats
    value: Floats
    target: Texts
    series: Texts

    def __len__(self) -> int:
        """Readings."""
        return len(self.t)

    @classmethod
    def from_arrow(cls, table: pa.Table) -> Self:
        """From a table with the schema of `chaos.journal.samples`."""
        target, series = Texts.from_arrow(table["target"]), Texts.from_arrow(table["series"])
        return cls(_floats(table["t"]), _floats(table["value"]), target, series)

    @classmethod
    def build(cls, readings: Iterable[ReadingRow]) -> Self:
        """From values, for tests and small evidence."""
        return cls.from_arrow(readings_table(readings))

    @cached_property
    def _parsed(self) -> tuple[tuple[str, dict[str, str]], ...]:
        return tuple(parse_series(text) for text in self.series.values)

    def select(self, name: str, labels: Mapping[str, str] | None = None, target: str | None = None) -> Points:
        """Points of every series of this name whose labels include the given ones, of one target or of all."""
        wanted = dict(labels or {})
        codes = [
            code
            for code, (found, has) in enumerate(self._parsed)
            if found == name and all(has.get(label) == value for label, value in wanted.items())
        ]
        mask = np.isin(self.series.codes, codes)
        if target is not None:
            mask &= self.target == target
        return Points(self.t[mask], self.target[mask], self.series[mask], self.value[mask])
