"""Samples and readings as numpy columns: a million rows are a handful of arrays, and every question is one vector
operation.

Texts are object arrays that share one string per distinct value, so `table.outcome == "good"` is cheap. What never
happened is nan (`first_token_s`), what is unknown is -1 (`answer_ok`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from chaos.journal.record import ReadingRow, Sample
from chaos.journal.samples import readings_table, samples_table
from chaos.journal.series import parse_series

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Texts = npt.NDArray[np.object_]
Integers = npt.NDArray[np.int64]


def texts_of(column: pa.ChunkedArray) -> Texts:
    """A text column as an object array, one string object per distinct value."""
    codes, values = _codes(column)
    return values[codes]


def _codes(column: pa.ChunkedArray) -> tuple[Integers, Texts]:
    """A text column as codes into its distinct values."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    whole = column.unify_dictionaries().combine_chunks()
    if isinstance(whole, pa.ChunkedArray):  # which of the two comes back differs between pyarrow versions
        whole = whole.chunk(0) if whole.num_chunks else pa.array([], column.type)
    codes = whole.indices.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
    return codes, np.array([*whole.dictionary.to_pylist(), ""], dtype=object)[:-1]


def _floats(column: pa.ChunkedArray) -> Floats:
    """Numbers; a null becomes nan."""
    return column.to_numpy().astype(np.float64, copy=False)  # type: ignore[no-any-return]  # pyarrow has no types


def _leaked(table: pa.Table) -> Texts:
    """What answers held of other requests, None where nobody could tell."""
    return np.array([*table["leaked"].to_pylist(), None], dtype=object)[:-1]


@dataclass(frozen=True)
class SampleTable:
    """One entry per attempt; columns as in `Sample`. The gaps of row i are `gaps[gap_offsets[i]:gap_offsets[i + 1]]`.

    A planned request that was never sent has one final row with `attempt` 0 and `sent_s` nan.
    """

    load: Texts
    request: Integers
    attempt: Integers
    final: Bools
    intended_s: Floats
    sent_s: Floats
    first_token_s: Floats
    end_s: Floats
    outcome: Texts
    why: Texts
    status: Integers
    served_by: Texts
    degraded: Texts
    tokens: Integers
    gaps: npt.NDArray[np.float32]
    gap_offsets: Integers
    answer_ok: npt.NDArray[np.int8]
    trace_id: pa.ChunkedArray
    leaked: Texts

    def __len__(self) -> int:
        """Rows."""
        return len(self.request)

    @classmethod
    def from_arrow(cls, table: pa.Table) -> Self:
        """From a table with the schema of `chaos.journal.samples`."""
        gaps = table["gaps_s"].combine_chunks()
        if isinstance(gaps, pa.ChunkedArray):
            gaps = gaps.chunk(0) if gaps.num_chunks else pa.array([], gaps.type)
        lengths = pc.list_value_length(gaps).to_numpy(zero_copy_only=False)
        answer = pc.fill_null(pc.cast(table["answer_ok"], pa.int8()), -1)
        columns: dict[str, Any] = {
            **{name: texts_of(table[name]) for name in ("load", "outcome", "why", "served_by", "degraded")},
            **{
                name: table[name].to_numpy().astype(np.int64, copy=False)
                for name in ("request", "attempt", "status", "tokens")
            },
            **{name: _floats(table[name]) for name in ("intended_s", "sent_s", "first_token_s", "end_s")},
        }
        return cls(
            **columns,
            final=table["final"].to_numpy().astype(np.bool_, copy=False),
            gaps=gaps.flatten().to_numpy(zero_copy_only=False),
            gap_offsets=np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))),
            answer_ok=answer.to_numpy(),
            trace_id=table["trace_id"],
            leaked=_leaked(table),
        )

    @classmethod
    def build(cls, samples: Iterable[Sample]) -> Self:
        """From values, for tests and small evidence."""
        return cls.from_arrow(samples_table(samples))

    def where(self, mask: Bools) -> Self:
        """The rows for which `mask` is true, gaps included."""
        lengths = np.diff(self.gap_offsets)
        changed: dict[str, Any] = {
            field.name: getattr(self, field.name)[mask]
            for field in dataclasses.fields(self)
            if field.name not in ("gaps", "gap_offsets", "trace_id")
        }
        return dataclasses.replace(
            self,
            **changed,
            gaps=self.gaps[np.repeat(mask, lengths)],
            gap_offsets=np.concatenate(([0], np.cumsum(lengths[mask], dtype=np.int64))),
            trace_id=self.trace_id.filter(pa.array(mask)),
        )

    @cached_property
    def finals(self) -> SampleTable:
        """One row per planned request."""
        return self.where(self.final)


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
    """Every reading of every series; texts are kept as codes into `targets` and `series`."""

    t: Floats
    value: Floats
    target_code: Integers
    series_code: Integers
    targets: Texts
    series: Texts

    def __len__(self) -> int:
        """Readings."""
        return len(self.t)

    @classmethod
    def from_arrow(cls, table: pa.Table) -> Self:
        """From a table with the schema of `chaos.journal.samples`."""
        target_code, targets = _codes(table["target"])
        series_code, series = _codes(table["series"])
        return cls(_floats(table["t"]), _floats(table["value"]), target_code, series_code, targets, series)

    @classmethod
    def build(cls, readings: Iterable[ReadingRow]) -> Self:
        """From values, for tests and small evidence."""
        return cls.from_arrow(readings_table(readings))

    @cached_property
    def _parsed(self) -> tuple[tuple[str, dict[str, str]], ...]:
        return tuple(parse_series(text) for text in self.series)

    def select(self, name: str, labels: Mapping[str, str] | None = None, target: str | None = None) -> Points:
        """Points of every series of this name whose labels include the given ones, of one target or of all."""
        wanted = dict(labels or {})
        codes = [
            code
            for code, (found, has) in enumerate(self._parsed)
            if found == name and all(has.get(label) == value for label, value in wanted.items())
        ]
        mask = np.isin(self.series_code, codes)
        if target is not None:
            mask &= self.targets[self.target_code] == target
        return Points(
            t=self.t[mask],
            target=self.targets[self.target_code[mask]],
            series=self.series[self.series_code[mask]],
            value=self.value[mask],
        )
