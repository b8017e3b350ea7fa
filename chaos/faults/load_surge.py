"""Far more users than usual come at once and stay: a campaign, a link in the news, a client that was told to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from chaos.faults.grips.strangers import OBSERVER, Crowd, StrangersFault, at_rate, seeded
from chaos.settings import setting
from chaos.units import Rate


@dataclass(frozen=True)
class LoadSurge(StrangersFault):
    """Sends traffic of strangers."""

    kind: ClassVar[str] = "load_surge"
    summary: ClassVar[str] = "Strangers send requests at a steady rate, on top of what users send."
    fidelity: ClassVar[str] = "HTTP: real requests through the users' edge"
    observer: ClassVar[str] = OBSERVER

    rate: Rate = at_rate()
    max_tokens: int = setting("longest answer that they ask for", default=24, least=1, most=4096)
    seed: int = seeded()

    def crowds(self) -> Sequence[Crowd]:
        """Patient people."""
        return (Crowd(float(self.rate), max_tokens=self.max_tokens),)
