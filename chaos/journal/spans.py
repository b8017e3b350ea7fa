"""Spans on disk and as columns: every hop's own record of every call, joined by trace ids.

`spans.arrows` is an Arrow IPC stream like the samples. A call between two parts that both keep records is there twice,
once from each end: the callee's `parent_id` is the caller's `span_id`. A call that never arrived has the caller's only,
one whose caller died or keeps no records the callee's.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from chaos.journal.columns import numbers
from chaos.journal.record import Span
from chaos.journal.samples import Dictionaries, RowWriter, batch_of
from chaos.journal.sketch import Floats, Integers
from chaos.journal.texts import Bools, Texts

SPANS_FILE = "spans.arrows"
_WORD = pa.dictionary(pa.int32(), pa.string())
SPANS_SCHEMA = pa.schema(
    [
        pa.field("trace_id", pa.string()),  # empty: nobody traced it
        pa.field("span_id", pa.string()),
        pa.field("parent_id", pa.string()),  # empty: the first of its trace
        pa.field("service", _WORD),
        pa.field("kind", _WORD),  # caller | callee: which end of the call wrote this
        pa.field("name", _WORD),
        pa.field("peer", _WORD),
        pa.field("start_s", pa.float64()),
        pa.field("end_s", pa.float64()),
        pa.field("outcome", _WORD),
        pa.field("attempt", pa.int16()),
        pa.field("prompt_tokens", pa.int32()),  # null: this end does not know
        pa.field("output_tokens", pa.int32()),
    ],
    metadata={"brownout": "spans 1"},
)


def span_writer(folder: Path, **settings: Any) -> RowWriter[Span]:
    """The writer of `spans.arrows` in a run directory."""
    return RowWriter(folder / SPANS_FILE, SPANS_SCHEMA, **settings)


@dataclass(frozen=True)
class SpanTable:
    """One entry per span; columns as in `Span`. Unknown tokens are -1. Ids stay in Arrow: a run may have millions."""

    trace_id: pa.ChunkedArray
    span_id: pa.ChunkedArray
    parent_id: pa.ChunkedArray
    service: Texts
    kind: Texts
    name: Texts
    peer: Texts
    start_s: Floats
    end_s: Floats
    outcome: Texts
    attempt: Integers
    prompt_tokens: Integers
    output_tokens: Integers

    def __len__(self) -> int:
        """Spans."""
        return len(self.start_s)

    @classmethod
    def from_arrow(cls, table: pa.Table) -> Self:
        """From a table with this module's schema."""
        columns: dict[str, Any] = {
            **{name: table[name] for name in ("trace_id", "span_id", "parent_id")},
            **{name: Texts.from_arrow(table[name]) for name in ("service", "kind", "name", "peer", "outcome")},
            **{name: numbers(table[name], np.float64, np.nan) for name in ("start_s", "end_s")},
            "attempt": numbers(table["attempt"], np.int64, 0),
            **{name: numbers(table[name], np.int64, -1) for name in ("prompt_tokens", "output_tokens")},
        }
        return cls(**columns)

    @classmethod
    def build(cls, spans: Iterable[Span] = ()) -> Self:
        """From values, for tests and small evidence."""
        return cls.from_arrow(pa.Table.from_batches([batch_of(list(spans), SPANS_SCHEMA, Dictionaries())]))

    def where(self, mask: Bools) -> Self:
        """The spans for which `mask` is true."""
        chosen = pa.array(mask)
        return type(self)(
            **{
                name: column.filter(chosen) if isinstance(column, pa.ChunkedArray) else column[mask]
                for name, column in vars(self).items()
            }
        )

    def of_traces(self, trace_ids: Iterable[str]) -> Self:
        """The spans of some traces."""
        wanted = pa.array(list(trace_ids), pa.string())
        return self.where(pc.is_in(self.trace_id, value_set=wanted).to_numpy())

    def rows(self) -> tuple[Span, ...]:
        """The spans as values, for a few of them."""
        columns = {
            name: column.to_pylist() if name.endswith("_id") else column.tolist() for name, column in vars(self).items()
        }
        for name in ("prompt_tokens", "output_tokens"):
            columns[name] = [None if count < 0 else count for count in columns[name]]
        return tuple(Span(*values) for values in zip(*columns.values(), strict=True))
