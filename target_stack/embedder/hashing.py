"""A hashing embedder: text to a unit vector, by arithmetic alone.

Words and their character n-grams are hashed to signed coordinates and weighted by 1 + ln(count), so related spellings
(`return`, `returned`) meet and no model file is needed. It knows nothing of meaning: texts are near when they share
words.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from hashlib import blake2b

NAME = "hashing-embedder-384"
DIMENSIONS = 384
_NGRAM = 3
_WORD_WEIGHT, _NGRAM_WEIGHT = 1.0, 1.0
_WORDS = re.compile(r"[a-z0-9]+(?:\.[0-9]+)?")
_STOPWORDS = frozenset(
    re.findall(
        r"\w+",
        """a about above after all an and any are as at be before but by can come do does for from get has have how i
        if in into is it its long many may me much must my need of off on once one or our should so such that the their
        them they this to until us was we what when where which who will with within you your""",
    )
)


def words(text: str) -> list[str]:
    """Lower-case words and numbers that carry meaning; all of them when none does."""
    found = _WORDS.findall(text.lower())
    return [word for word in found if word not in _STOPWORDS] or found


def _features(text: str) -> Iterator[tuple[str, float]]:
    for word, count in Counter(words(text)).items():
        weight = 1.0 + math.log(count)
        yield word, weight * _WORD_WEIGHT
        padded = f"<{word}>"
        grams = [padded[i : i + _NGRAM] for i in range(len(padded) - _NGRAM + 1)]
        for gram in grams:
            yield f"#{gram}", weight * _NGRAM_WEIGHT / math.sqrt(len(grams))


def embed(text: str) -> tuple[float, ...]:
    """A vector of length 1 with 384 coordinates; the zero vector for a text without letters or digits."""
    vector = [0.0] * DIMENSIONS
    for feature, weight in _features(text):
        digest = int.from_bytes(blake2b(feature.encode(), digest_size=4).digest())
        vector[(digest >> 1) % DIMENSIONS] += weight if digest & 1 else -weight
    norm = math.sqrt(sum(x * x for x in vector))
    return tuple(x / norm for x in vector) if norm else tuple(vector)


def similarity(left: tuple[float, ...], right: tuple[float, ...]) -> float:
    """Cosine of two unit vectors."""
    return sum(a * b for a, b in zip(left, right, strict=True))
