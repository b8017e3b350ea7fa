"""Further model ids beside the base model, as vLLM serves LoRA adapters: the same weights, habits of their own.

A release that went wrong is an adapter that talks too long, is too slow, or fails now and then.
"""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True)
class Adapter:
    """The habits of one model id.

    `verbosity` stretches the length of its answers, `slow_factor` the time of their tokens, `error_share` is the part
    of its requests that ends in 500.
    """

    verbosity: float = 1.0
    slow_factor: float = 1.0
    error_share: float = 0.0

    @classmethod
    def from_json(cls, name: str, record: Mapping[str, float]) -> Self:
        """Read one. Raises ValueError that names the key."""
        if unknown := sorted(set(record) - {each.name for each in dataclasses.fields(cls)}):
            raise ValueError(f"engine config: unknown key 'adapters.{name}.{unknown[0]}'")
        adapter = cls(**record)
        if adapter.verbosity <= 0 or adapter.slow_factor < 1 or not 0 <= adapter.error_share <= 1:
            raise ValueError(
                f"engine config: adapters.{name}: verbosity above 0, slow_factor from 1, error_share 0 to 1"
            )
        return adapter


BASE = Adapter()
"""The base model has no habits."""


class Luck:
    """Which requests of which model id fail: a matter of the seed and of their number, never of the hour."""

    def __init__(self, seed: int, adapters: Mapping[str, Adapter]) -> None:
        """No request yet."""
        self._seed = seed
        self._adapters = adapters
        self._asked: Counter[str] = Counter()

    def fails(self, model: str) -> bool:
        """Whether the next request of this model id fails."""
        share = self._adapters.get(model, BASE).error_share
        if share == 0.0:
            return False
        self._asked[model] += 1
        return random.Random(f"{self._seed}/{model}/{self._asked[model]}").random() < share
