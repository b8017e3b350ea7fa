"""The vectors of kept answers, in memory: which kept question is nearest to this one?

The cache itself knows no vectors. This is one gateway's view of what is in it: it may name an answer that has expired
or was evicted, so whoever follows it looks, and forgets what is gone.
"""

from __future__ import annotations

import math
import operator
from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

# Plain tuples: only questions with the same telling words are compared, a handful, so a matrix library would not be
# faster, and it would cost every process of the stack sixteen megabytes.
Vector = tuple[float, ...]


@dataclass(frozen=True)
class Entry:
    """One kept question: its scope, the embedder it was embedded by, its unit vector, and its telling words."""

    scope: str
    embedder: str
    vector: Vector
    telling: tuple[str, ...]


def unit(numbers: Iterable[float]) -> Vector:
    """The vector at length 1; the zero vector stays as it is."""
    vector = tuple(numbers)
    length = math.sqrt(_dot(vector, vector))
    return tuple(number / length for number in vector) if length else vector


class VectorIndex:
    """At most `size` entries by key; the oldest goes first."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._entries: OrderedDict[str, Entry] = OrderedDict()
        self._alike: defaultdict[_Kind, dict[str, Entry]] = defaultdict(dict)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._entries)

    def __contains__(self, key: str) -> bool:
        """Whether a key is known."""
        return key in self._entries

    def add(self, key: str, entry: Entry) -> None:
        """Remember it, as the newest."""
        self.forget(key)
        self._entries[key] = self._alike[_kind(entry)][key] = entry
        if len(self._entries) > self._size:
            self.forget(next(iter(self._entries)))

    def forget(self, key: str) -> None:
        """It is gone."""
        entry = self._entries.pop(key, None)
        if entry is None:
            return
        kind = _kind(entry)
        del self._alike[kind][key]
        if not self._alike[kind]:
            del self._alike[kind]

    def nearest(self, asked: Entry, least: float) -> tuple[str, float] | None:
        """The key of the nearest question that may be answered alike, and its cosine; None below `least`."""
        alike = self._alike.get(_kind(asked), {})
        cosines = ((key, _dot(entry.vector, asked.vector)) for key, entry in alike.items())
        key, cosine = max(cosines, key=operator.itemgetter(1), default=("", -math.inf))
        return (key, cosine) if cosine >= least else None


_Kind = tuple[str, str, tuple[str, ...]]


def _kind(entry: Entry) -> _Kind:
    """What two questions must share before their vectors say anything."""
    return entry.scope, entry.embedder, entry.telling


def _dot(one: Vector, other: Vector) -> float:
    return math.fsum(map(operator.mul, one, other))
