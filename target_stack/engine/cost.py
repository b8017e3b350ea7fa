"""How long a step of the engine takes: the only place where the simulated GPU has a speed.

A step reads the weights once, whatever it computes, so prefill and decode in one step share the larger of their two
fixed parts; what grows is the work that a prompt token and a running sequence add.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True)
class Cost:
    """Seconds per part of a step. The defaults imitate a small model: a first token in 20 ms, then one each 8 ms."""

    prefill_s_base: float = 0.012
    prefill_s_per_token: float = 0.0002
    decode_s_per_step: float = 0.008
    batch_effect: float = 0.0004

    @classmethod
    def from_json(cls, record: Mapping[str, float]) -> Self:
        """Read the parts that are given. Raises ValueError that names the key."""
        if unknown := sorted(set(record) - {each.name for each in dataclasses.fields(cls)}):
            raise ValueError(f"engine config: unknown key 'cost.{unknown[0]}'")
        return cls(**record)

    def step_s(self, *, prefill_tokens: int, decoding: int) -> float:
        """Seconds for a step that computes so many prompt tokens and one token for each of `decoding` sequences."""
        fixed = max(self.prefill_s_base if prefill_tokens else 0.0, self.decode_s_per_step if decoding else 0.0)
        return fixed + self.prefill_s_per_token * prefill_tokens + self.batch_effect * decoding
