"""A text column as codes into its few distinct texts: a million rows are compared with a word in a millisecond.

It behaves as an array of texts does: `column == "good"` is one flag a row, `column[rows]` is the column of these rows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from chaos.journal.columns import numbers

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Texts:
    """`values` may hold texts that no row has. Code -1 is None: nobody knows. Only `leaked` has such rows, so a text is
    Any to the type checker, as it is in an array of objects.
    """

    codes: npt.NDArray[np.int32]
    values: tuple[str, ...]

    @classmethod
    def from_arrow(cls, column: pa.ChunkedArray) -> Texts:
        """A text column of any encoding."""
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        chunks = column.unify_dictionaries().chunks
        values = tuple(chunks[0].dictionary.to_pylist()) if chunks else ()
        indices = pa.chunked_array([chunk.indices for chunk in chunks], pa.int32())
        return cls(numbers(indices, np.int32, -1), values)

    def __len__(self) -> int:
        """Rows."""
        return len(self.codes)

    @property
    def known(self) -> Bools:
        """Which rows have a text at all."""
        return self.codes >= 0

    def isin(self, wanted: Collection[str | None]) -> Bools:
        """Which rows have one of these texts."""
        among = np.array([value in wanted for value in (*self.values, None)], dtype=np.bool_)
        return among[self.codes]  # the code of None is -1, the last

    def __eq__(self, text: object) -> Bools:  # type: ignore[override]  # row by row, as an array compares
        """Which rows have this text."""
        return self.isin((text,) if isinstance(text, str) or text is None else ())

    def __ne__(self, text: object) -> Bools:  # type: ignore[override]  # row by row, as an array compares
        """Which rows have another."""
        return ~(self == text)

    __hash__ = None  # type: ignore[assignment]  # as an array has none

    @overload
    def __getitem__(self, rows: int) -> Any: ...
    @overload
    def __getitem__(self, rows: slice | npt.NDArray[Any]) -> Texts: ...
    def __getitem__(self, rows: int | slice | npt.NDArray[Any]) -> Any:
        """The text of one row, or the column of some rows (flags, numbers or a slice)."""
        found = self.codes[rows]
        return Texts(found, self.values) if isinstance(found, np.ndarray) else (*self.values, None)[found]

    @cached_property
    def distinct(self) -> tuple[str, ...]:
        """The texts that some row has, in order of the alphabet."""
        counts = np.bincount(self.codes[self.known], minlength=len(self.values))
        return tuple(sorted(value for value, count in zip(self.values, counts, strict=True) if count))

    def tolist(self) -> list[Any]:
        """One text a row."""
        texts = (*self.values, None)
        return [texts[code] for code in self.codes.tolist()]

    def __iter__(self) -> Iterator[Any]:
        """One text a row."""
        return iter(self.tolist())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[np.object_]:
        """As numpy has texts of any length."""
        del dtype, copy
        return np.array((*self.values, None), dtype=object)[self.codes]

    def __arrow_array__(self, type: pa.DataType | None = None) -> pa.Array:  # noqa: A002  pyarrow's name for it
        """As Arrow has texts."""
        codes = pa.array(self.codes, pa.int32(), mask=~self.known)
        plain = pa.DictionaryArray.from_arrays(codes, pa.array(self.values, pa.string())).dictionary_decode()
        return plain if type is None else plain.cast(type)
