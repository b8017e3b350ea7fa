"""Arrow columns as numpy arrays, read straight from their buffers.

pyarrow's own way loads pandas wherever it is installed, which takes more time and memory than judging a run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Array = npt.NDArray[Any]

_KINDS = {
    pa.int16(): np.int16,
    pa.int32(): np.int32,
    pa.int64(): np.int64,
    pa.float32(): np.float32,
    pa.float64(): np.float64,
}


def numbers(column: pa.ChunkedArray, kind: type[Any], missing: Any) -> Array:
    """A column of numbers or flags as one array, with `missing` where there is none."""
    whole, start = np.empty(len(column), dtype=kind), 0
    for chunk in column.chunks:
        part = whole[start : start + len(chunk)]
        part[:] = values(chunk)
        if chunk.null_count:
            part[~_bits(chunk, chunk.buffers()[0])] = missing
        start += len(chunk)
    return whole


def values(chunk: pa.Array) -> Array:
    """What lies in the buffer of a chunk of numbers or flags, also where it means nothing."""
    if not len(chunk):
        return np.empty(0, dtype=_KINDS.get(chunk.type, np.bool_))
    data = chunk.buffers()[1]
    if pa.types.is_boolean(chunk.type):
        return _bits(chunk, data)
    return np.frombuffer(data, _KINDS[chunk.type], len(chunk), chunk.offset * chunk.type.bit_width // 8)


def inside(lists: pa.ListArray, chosen: npt.NDArray[np.bool_]) -> Array:
    """The entries of the lists of the chosen rows, one behind the other. A row that has no list has no entries."""
    if not len(lists) or lists.null_count:
        return np.empty(0, dtype=np.int64)
    ends = np.frombuffer(lists.buffers()[1], np.int32, len(lists) + 1, lists.offset * 4)
    entries = values(lists.values)[ends[0] : ends[-1]]
    return entries if chosen.all() else entries[np.repeat(chosen, np.diff(ends))]


def last_inside(lists: pa.ListArray, missing: int) -> Array:
    """The last entry of each list, `missing` where it has none."""
    if not len(lists) or lists.null_count:
        return np.full(len(lists), missing)
    ends = np.frombuffer(lists.buffers()[1], np.int32, len(lists) + 1, lists.offset * 4)
    entries = values(lists.values)
    found = entries[np.maximum(ends[1:], 1) - 1] if len(entries) else np.full(len(lists), missing)
    return np.where(np.diff(ends) > 0, found, missing)


def _bits(chunk: pa.Array, data: pa.Buffer) -> npt.NDArray[np.bool_]:
    first = chunk.offset // 8
    packed = np.frombuffer(data, np.uint8, (chunk.offset + len(chunk) + 7) // 8 - first, first)
    flags = np.unpackbits(packed, count=chunk.offset % 8 + len(chunk), bitorder="little")
    return flags[chunk.offset % 8 :].view(np.bool_)
