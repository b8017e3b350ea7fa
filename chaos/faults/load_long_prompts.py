"""Requests with very long prompts come in: somebody pastes whole documents, and each holds up the prefill of others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.grips.strangers import OBSERVER, Crowd, StrangersFault, at_rate, seeded
from chaos.settings import setting
from chaos.units import Rate


@dataclass(frozen=True)
class LoadLongPrompts(StrangersFault):
    """Sends long prompts of strangers."""

    kind: ClassVar[str] = "load_long_prompts"
    summary: ClassVar[str] = "Strangers send prompts that are far longer than what users send."
    fidelity: ClassVar[str] = "HTTP: real requests through the users' edge"
    observer: ClassVar[str] = OBSERVER

    rate: Rate = at_rate()
    words: int = setting("length of each prompt", default=1500, least=100, most=100_000)
    max_tokens: int = setting("longest answer that they ask for", default=24, least=1, most=4096)
    seed: int = seeded()

    def crowds(self) -> Sequence[Crowd]:
        """People who paste."""
        return (Crowd(float(self.rate), prompt_words=self.words, max_tokens=self.max_tokens),)
