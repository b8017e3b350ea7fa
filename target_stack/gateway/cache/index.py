"""The vectors of kept answers, in memory: which kept question is nearest to this one?

The cache itself knows no vectors. This is one gateway's view of what is in it: it may name an answer that has expired
or was evicted, so whoever follows it looks, and forgets what is gone.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Entry:
    """One kept question: its scope, the embedder it was embedded by, its unit vector, and its telling words."""

    scope: str
    embedder: str
    vector: Vector
    telling: tuple[str, ...]


def unit(numbers: Sequence[float]) -> Vector:
    """The vector at length 1; the zero vector stays as it is."""
    vector = np.asarray(numbers, dtype=np.float32)
    length = float(np.linalg.norm(vector))
    return vector / np.float32(length) if length else vector


class VectorIndex:
    """At most `size` entries by key; the oldest goes first."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._entries: OrderedDict[str, Entry] = OrderedDict()

    def __len__(self) -> int:
        """How many there are."""
        return len(self._entries)

    def __contains__(self, key: str) -> bool:
        """Whether a key is known."""
        return key in self._entries

    def add(self, key: str, entry: Entry) -> None:
        """Remember it, as the newest."""
        self._entries.pop(key, None)
        self._entries[key] = entry
        if len(self._entries) > self._size:
            self._entries.popitem(last=False)

    def forget(self, key: str) -> None:
        """It is gone."""
        self._entries.pop(key, None)

    def nearest(self, asked: Entry, least: float) -> tuple[str, float] | None:
        """The key of the nearest question that may be answered alike, and its cosine; None below `least`."""
        keys = [key for key, entry in self._entries.items() if _comparable(entry, asked)]
        if not keys:
            return None
        cosines = np.stack([self._entries[key].vector for key in keys]) @ asked.vector
        best = int(np.argmax(cosines))
        cosine = float(cosines[best])
        return (keys[best], cosine) if cosine >= least else None


def _comparable(entry: Entry, asked: Entry) -> bool:
    return (entry.scope, entry.embedder, entry.telling) == (asked.scope, asked.embedder, asked.telling)
