"""Randomness from one seed: each consumer draws from a stream of its own name, so a new one shifts nobody's draws."""

from __future__ import annotations

import hashlib
import random


class SeededEntropy:
    """The `Entropy` port. The same seed and name give the same draws on every machine."""

    def __init__(self, seed: int) -> None:
        """`seed` is the run's."""
        self._seed = seed

    def stream(self, name: str) -> random.Random:
        """A fresh generator whose state is SHA-256 of seed and name."""
        digest = hashlib.sha256(f"{self._seed}\0{name}".encode()).digest()
        return random.Random(int.from_bytes(digest))
